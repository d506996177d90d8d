# Configures the tree as one has it without MPI, where no MPI can be found, and looks at what came
# of it. Nothing is built: sluice-bench-without-mpi of the tested build is made of the same parts.
# Run with cmake -P.
file(REMOVE_RECURSE ${work_dir})

# configure(NAME FOUND|FAILS TEXT argument...): the output has this text.
function(configure name what text)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -G ${generator} -S ${source_dir} -B ${work_dir}/${name}
            -D CMAKE_BUILD_TYPE=Release -D CMAKE_CXX_COMPILER=${compiler} -D SLUICE_CUDA=OFF ${ARGN}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " words "${output}")
  if(what STREQUAL FAILS AND result EQUAL 0)
    message(FATAL_ERROR "${name} was to fail: ${output}")
  elseif(what STREQUAL FOUND AND NOT result EQUAL 0)
    message(FATAL_ERROR "${name}: ${output}")
  endif()
  if(NOT words MATCHES "${text}")
    message(FATAL_ERROR "${name} does not say \"${text}\": ${output}")
  endif()
endfunction()

# No file that is compiled or linked has to do with MPI but what is in MPI's place.
function(knows_no_mpi name)
  file(STRINGS ${work_dir}/${name}/compile_commands.json lines REGEX "\"(file|command)\": ")
  list(LENGTH lines count)
  if(count LESS 100)
    message(FATAL_ERROR "${name}: only ${count} lines of commands")
  endif()
  foreach(line IN LISTS lines)
    string(REPLACE "without_mpi" "" rest "${line}")
    if(rest MATCHES "(src/transport/mpi/|mpi_tests/|openmpi|mpich|[/_]mpi_[a-z]+\\.cc|look_mpi)")
      message(FATAL_ERROR "${name}: ${CMAKE_MATCH_1} in ${line}")
    endif()
  endforeach()
endfunction()

set(hidden -D CMAKE_DISABLE_FIND_PACKAGE_MPI=ON)
configure(off FOUND "Sluice: no MPI .SLUICE_MPI is OFF." -D SLUICE_MPI=OFF)
knows_no_mpi(off)
configure(nothing FAILS "SLUICE_MPI is perhaps: it is AUTO, ON or OFF" -D SLUICE_MPI=perhaps)
# Without tests there is less to configure.
set(less -D SLUICE_BUILD_TESTS=OFF -D SLUICE_BUILD_BENCH=OFF)
configure(auto FOUND "Sluice: no MPI was found" ${less} ${hidden})
knows_no_mpi(auto)
configure(on FAILS "MPI" -D SLUICE_MPI=ON ${less} ${hidden})
# What is installed offers no component that is not there.
file(READ ${work_dir}/auto/sluice-config.cmake config)
if(NOT config MATCHES "_sluice_installed \"core\"")
  message(FATAL_ERROR "the installed package offers more than core: ${config}")
endif()
