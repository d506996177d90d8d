# What a user of an installed sluice does: install, find_package, build, run. Run with cmake -P.
set(prefix ${work_dir}/prefix)
set(outside_build ${work_dir}/outside-build)
file(REMOVE_RECURSE ${prefix} ${outside_build})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "ended with ${result}: ${ARGN}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${built_dir} --prefix ${prefix})
run(${CMAKE_COMMAND} -S ${outside_dir} -B ${outside_build} -G ${generator}
    -D CMAKE_BUILD_TYPE=Release -D CMAKE_CXX_COMPILER=${compiler}
    -D MPI_CXX_COMPILER=${mpi_compiler} -D CMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${outside_build})
run(${outside_build}/without_mpi)
run(${mpirun} --oversubscribe -np 2 ${outside_build}/with_mpi)
run(${outside_build}/own_fabric)
