# Checkpoints over MPI.
sluice_mpi_test(checkpoint_mpi_test NPS 1 2 3 5
  SOURCES checkpoint_mpi_test.cc ${PROJECT_SOURCE_DIR}/tests/checkpoint/checkpoint_dir.cc
  DEPS session_test_support sluice_transport_mpi absl::str_format)
