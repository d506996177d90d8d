# Checkpoints over MPI.
sluice_mpi_test(checkpoint_mpi_test NPS 1 2 3 5
  SOURCES checkpoint_mpi_test.cc
  DEPS checkpoint_dir session_test_support sluice_transport_mpi absl::str_format)

# sluice-bench checkpoint, alone and under mpirun.
if(TARGET sluice-bench)
  add_test(NAME bench_checkpoint
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/mpi_tests/checkpoint_test.py
            ${PROJECT_SOURCE_DIR}/scripts/mpirun.sh $<TARGET_FILE:sluice-bench>)
  set_tests_properties(bench_checkpoint PROPERTIES LABELS mpi COST 10
                                                   ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
endif()
