# One rank of a random job under mpirun (tests/chaos). chaos.py of scripts makes the jobs, runs and
# judges them.
add_executable(chaos_rank chaos/chaos_rank.cc)
target_link_libraries(chaos_rank PRIVATE chaos_parts sluice_transport_mpi MPI::MPI_CXX)
sluice_flags(chaos_rank tool)
