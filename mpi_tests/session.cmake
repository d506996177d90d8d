# Sessions over MPI.
sluice_mpi_test(session_mpi_test NPS 1 2 3 5 8 16
  SOURCES session_mpi_test.cc ${PROJECT_SOURCE_DIR}/tests/session/allocation_count.cc
  DEPS session_test_support sluice_transport_mpi)
sluice_mpi_test(session_silence_mpi_test NPS 2 4 SOURCES session_silence_mpi_test.cc
  DEPS session_test_support sluice_transport_mpi)
