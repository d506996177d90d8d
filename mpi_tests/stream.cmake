# sluice-bench stream, alone and under mpirun.

if(TARGET sluice-bench)
  foreach(name stream stream_bad_input)
    add_test(NAME bench_${name}
      COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/mpi_tests/${name}_test.py
              ${PROJECT_SOURCE_DIR}/scripts/mpirun.sh $<TARGET_FILE:sluice-bench>)
    set_tests_properties(bench_${name} PROPERTIES LABELS mpi COST 20
                                                  ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
  endforeach()
endif()
