# What a user of an installed sluice does: install, find_package, build, run. Run with cmake -P.
set(prefix ${work_dir}/prefix)
set(outside_build ${work_dir}/outside-build)
file(REMOVE_RECURSE ${prefix} ${outside_build} ${work_dir}/components)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "ended with ${result}: ${ARGN}")
  endif()
endfunction()

# Without optimization, which takes longer than all that is looked at here.
set(configure ${CMAKE_COMMAND} -G ${generator} -D CMAKE_BUILD_TYPE=Debug
    -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_PREFIX_PATH=${prefix})
if(have_mpi)
  list(APPEND configure -D MPI_CXX_COMPILER=${mpi_compiler})
endif()

run(${CMAKE_COMMAND} --install ${built_dir} --prefix ${prefix})
run(${configure} -S ${outside_dir} -B ${outside_build} -D SOURCE_DIR=${source_dir})
run(${CMAKE_COMMAND} --build ${outside_build})
run(${outside_build}/without_mpi)
if(have_mpi)
  run(${mpirun} --oversubscribe -np 2 ${outside_build}/with_mpi)
  run(${mpirun} --oversubscribe -np 8 ${outside_build}/readme_example)
endif()
run(${outside_build}/own_fabric)

# A program in C, from what pkg-config says, in a tree that has been moved.
if(have_c AND c_compiler AND pkg_config)
  set(moved ${work_dir}/moved)
  file(REMOVE_RECURSE ${moved})
  file(COPY ${prefix}/ DESTINATION ${moved}
       FILES_MATCHING PATTERN "sluice.h" PATTERN "libsluice.so*" PATTERN "sluice.pc")
  file(GLOB_RECURSE pc ${moved}/sluice.pc)
  execute_process(COMMAND ${pkg_config} --cflags --libs ${pc}
                  RESULT_VARIABLE result OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  if(NOT result EQUAL 0 OR NOT flags MATCHES "${moved}")
    message(FATAL_ERROR "pkg-config ended with ${result}: ${flags}")
  endif()
  file(GLOB_RECURSE library ${moved}/libsluice.so.0)
  get_filename_component(library_dir ${library} DIRECTORY)
  run(${c_compiler} -std=c11 -Wall -Wextra -Werror ${c_example} -o ${moved}/weight_sync ${flags}
      -Wl,-rpath,${library_dir})
  run(${spawn} -n 2 ${moved}/weight_sync)
endif()

# components(NAME EXPECTED|FAILS WITH argument...): asks for them, and gets these targets; or fails
# with this text.
function(components name what with)
  set(build_dir ${work_dir}/components/${name})
  execute_process(COMMAND ${configure} -S ${outside_dir}/../components -B ${build_dir} ${ARGN}
                          "-DEXPECTED=${with}"
                  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " words "${output}")
  if(what STREQUAL EXPECTED AND NOT result EQUAL 0)
    message(FATAL_ERROR "${name}: ${output}")
  elseif(what STREQUAL FAILS AND (result EQUAL 0 OR NOT words MATCHES "${with}"))
    message(FATAL_ERROR "${name} was to fail with \"${with}\": ${output}")
  endif()
endfunction()

set(gpu)
if(have_cuda)
  list(APPEND gpu cuda)
endif()
if(have_nccl)
  list(APPEND gpu nccl)
endif()
set(no_mpi -D CMAKE_DISABLE_FIND_PACKAGE_MPI=ON)
if(have_mpi)
  components(nothing_asked EXPECTED "sluice;mpi;${gpu}")
  components(mpi EXPECTED "sluice;mpi" -D COMPONENTS=mpi)
  components(mpi_without_mpi FAILS "component mpi: no MPI for C\\+\\+ was found" ${no_mpi}
             -D COMPONENTS=mpi)
else()
  components(nothing_asked EXPECTED "sluice;${gpu}")
  components(mpi FAILS "component mpi: this sluice was built without it" -D COMPONENTS=mpi)
endif()
components(without_mpi EXPECTED "sluice;${gpu}" ${no_mpi})
run(${CMAKE_COMMAND} --build ${work_dir}/components/without_mpi)
run(${work_dir}/components/without_mpi/without_mpi)
components(unknown FAILS "component wings: this sluice was built without it" -D COMPONENTS=wings)
if(have_cuda)
  components(cuda EXPECTED "sluice;cuda" -D COMPONENTS=cuda)
else()
  components(cuda FAILS "component cuda: this sluice was built without it" -D COMPONENTS=cuda)
endif()

if(python)
  run(${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 ${python} ${outside_dir}/../programs_test.py
      ${prefix} ${version} ${has_manual})
endif()
