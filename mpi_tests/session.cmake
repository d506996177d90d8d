# Sessions over MPI.
sluice_mpi_test(session_mpi_test NPS 1 2 3 5 8 16
  SOURCES session_mpi_test.cc
  DEPS heap_bytes session_test_support sluice_transport_mpi)
sluice_mpi_test(connect_mpi_test NPS 1 2 4 7
  SOURCES connect_mpi_test.cc
  DEPS connect_job session_test_support sluice_transport_mpi)
sluice_mpi_test(session_direct_mpi_test NPS 5 OF session_mpi_test)
set_property(TEST session_direct_mpi_test_np5 PROPERTY ENVIRONMENT SLUICE_TEST_DIRECT=1)
if(SLUICE_OPEN_MPI)
  get_property(session_mpi GLOBAL PROPERTY SLUICE_COMMAND_session_mpi_test)
  sluice_mpi_test(session_denied NPS 3 RUN deny_calls
    MCA btl_vader_single_copy_mechanism none
    ARGS process_vm_readv,process_vm_writev,pidfd_open ${session_mpi})
  set_property(TEST session_denied_np3 PROPERTY ENVIRONMENT SLUICE_TEST_DIRECT=1)
endif()
sluice_mpi_test(failed_close_mpi_test NPS 2 3 SOURCES failed_close_mpi_test.cc
  DEPS session_test_support sluice_transport_mpi)
sluice_mpi_test(failed_close_tcp NPS 2 3 OF failed_close_mpi_test MCA btl self,tcp)
sluice_mpi_test(failed_close_direct NPS 3 OF failed_close_mpi_test)
set_property(TEST failed_close_direct_np3 PROPERTY ENVIRONMENT SLUICE_TEST_DIRECT=1)
sluice_mpi_test(session_silence_mpi_test NPS 2 4 SOURCES session_silence_mpi_test.cc
  DEPS session_test_support sluice_transport_mpi)
sluice_mpi_test(session_patience_mpi_test NPS 3 ALONE session_patience_mpi_test.cc
  DEPS session_test_support sluice_transport_mpi)
sluice_mpi_test(control_messages_mpi_test NPS 1 2 5 12 16 PROGRAM control_messages_tests
  SOURCES control_messages_mpi_test.cc
  DEPS session_test_support sluice_transport_mpi)
sluice_mpi_test(two_sessions_mpi_test NPS 2 3 4 8 SOURCES two_sessions_mpi_test.cc
  DEPS session_test_support sluice_transport_mpi)
# With less than the thread level that progress threads need, and with that level.
sluice_mpi_test(progress_thread_mpi_test NPS 2 3 SOURCES progress_thread_mpi_test.cc
  DEPS session_test_support sluice_transport_mpi ARGS --gtest_filter=-ProgressThreadMpiTest.*)
sluice_mpi_test(progress_thread_multiple NPS 2 3 5 OF progress_thread_mpi_test
  ARGS multiple --gtest_filter=-ProgressThreadLevelTest.*)

# What the kernel says of a receiver that asks for nothing, over shared memory, TCP and directly.
# Over TCP each test has a process of its own: what MPI took in one is free for the next, where
# nothing would grow. And streams that are closed before their end, with others after them.
sluice_mpi_test(slow_receiver_mpi_test NPS 2 SOURCES slow_receiver_mpi_test.cc
  DEPS session_test_support sluice_transport_mpi)
sluice_mpi_test(slow_receiver_tcp_test NPS 2 3 OF slow_receiver_mpi_test MCA btl self,tcp
  ARGS --gtest_filter=-*ConsumerStops)
sluice_mpi_test(slow_receiver_stream_tcp_test NPS 2 3 OF slow_receiver_mpi_test
  MCA btl self,tcp ARGS --gtest_filter=-*MemoryComes)
sluice_mpi_test(slow_receiver_direct_test NPS 2 OF slow_receiver_mpi_test)
set_property(TEST slow_receiver_direct_test_np2 PROPERTY ENVIRONMENT SLUICE_TEST_DIRECT=1)
# What it says of streams of tiny pieces.
sluice_mpi_test(tiny_pieces_mpi_test NPS 2 4 SOURCES tiny_pieces_mpi_test.cc
  DEPS session_test_support sluice_transport_mpi)
sluice_mpi_test(tiny_pieces_tcp_test NPS 2 4 OF tiny_pieces_mpi_test MCA btl self,tcp)
sluice_mpi_test(tiny_pieces_direct_test NPS 2 OF tiny_pieces_mpi_test)
set_property(TEST tiny_pieces_direct_test_np2 PROPERTY ENVIRONMENT SLUICE_TEST_DIRECT=1)
sluice_mpi_test(stream_reopen_mpi_test NPS 2 3 SOURCES stream_reopen_mpi_test.cc
  DEPS session_test_support sluice_transport_mpi)
if(SLUICE_OPEN_MPI)
  sluice_mpi_test(stream_reopen_tcp_test NPS 2 3 OF stream_reopen_mpi_test MCA btl self,tcp)
endif()

# Jobs of which one rank is killed or stopped in the middle of a run. By default mpirun ends the job
# with its first rank. So these say --enable-recovery, and leave a file per rank.
sluice_mpi_program(fault_rank SOURCES fault_rank.cc fault_result.cc call_watch.cc
                   DEPS session_test_support sluice_transport_mpi)

# fault_test(NP VICTIM kill|stop PART [DIRECT] [argument of mpirun...])
#   PART: as fault_rank's.
function(fault_test np victim fault part)
  cmake_parse_arguments(ARG "DIRECT" "" "" ${ARGN})
  set(name fault_${fault}_${part}_np${np})
  set(environment PYTHONDONTWRITEBYTECODE=1)
  if(ARG_UNPARSED_ARGUMENTS)
    set(name ${name}_tcp)
  endif()
  if(ARG_DIRECT)
    set(name ${name}_direct)
    list(APPEND environment SLUICE_TEST_DIRECT=1)
  endif()
  add_test(NAME ${name}
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/mpi_tests/fault_test.py
            ${PROJECT_SOURCE_DIR}/scripts/mpirun.sh $<TARGET_FILE:fault_rank> ${np} ${victim}
            ${fault} ${part} ${ARG_UNPARSED_ARGUMENTS})
  set_tests_properties(${name} PROPERTIES LABELS mpi ENVIRONMENT "${environment}")
  if(fault STREQUAL stop)  # it waits most of its time
    set_tests_properties(${name} PROPERTIES COST 25)
  endif()
endfunction()
foreach(fault kill stop)
  fault_test(3 1 ${fault} sender)
  fault_test(3 0 ${fault} receiver)
  fault_test(5 2 ${fault} sender)
  fault_test(5 4 ${fault} receiver)
  fault_test(5 3 ${fault} all)
  fault_test(3 1 ${fault} stream)
  fault_test(5 0 ${fault} stream)
  if(SLUICE_OPEN_MPI)
    fault_test(3 1 ${fault} all --mca btl self,tcp)
  endif()
  fault_test(3 1 ${fault} sender DIRECT)
  fault_test(3 0 ${fault} receiver DIRECT)
  fault_test(5 3 ${fault} all DIRECT)
endforeach()
# While the others wait for a rank that is late.
fault_test(3 1 stop late)
# In calls that the rank does not make any more, and in those that it is in the middle of.
foreach(part compile idle open load save loading saving)
  fault_test(3 2 kill ${part})
endforeach()
if(SLUICE_OPEN_MPI)
  fault_test(3 1 kill stream --mca btl self,tcp)
  fault_test(3 0 kill compile --mca btl self,tcp)
endif()
fault_test(3 0 stop compile)
