# sluice-bench reshard under mpirun, against an oracle in Python (3.9 or newer, nothing installed).

# reshard_test(NAME COST SCRIPT argument...). One processor each: half the time is Python's and the
# starts of mpirun. COST: the longest first.
function(reshard_test name cost script)
  reshard_program_test(${name} ${cost} sluice-bench ${script} ${ARGN})
endfunction()
function(reshard_program_test name cost program script)
  add_test(NAME ${name}
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/mpi_tests/${script}
            ${PROJECT_SOURCE_DIR}/scripts/mpirun.sh $<TARGET_FILE:${program}> ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS mpi COST ${cost}
                                          ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
endfunction()

if(TARGET sluice-bench)
  foreach(np 1 2 3 5 8 16)
    reshard_test(reshard_random_np${np} ${np} reshard_random_test.py ${np} 1)
  endforeach()
  reshard_test(reshard_control 16 reshard_control_test.py)
  reshard_test(reshard_memory 20 reshard_memory_test.py)
  reshard_test(reshard_fair_ways 20 fair_ways_test.py)
  reshard_test(reshard_bad_input 20 reshard_bad_input_test.py)
  reshard_test(reshard_plan_only 2 reshard_plan_only_test.py)
  if(SLUICE_OPEN_MPI)  # MPICH's launcher may end the job before the others have said anything
    reshard_test(reshard_kill 10 bench_kill_test.py)
  endif()
  # The layouts that docs/layouts.md recommends, with every element verified.
  sluice_mpi_test(reshard_recipes NPS 8 RUN sluice-bench
    ARGS reshard --cases ${PROJECT_SOURCE_DIR}/docs/recipes.json --iters 1)
  reshard_test(bench_help 5 help_test.py $<TARGET_FILE:sluice-sim>)
  reshard_test(bench_doctor 10 doctor_test.py $<TARGET_FILE:deny_calls>)
  set_tests_properties(bench_doctor PROPERTIES SKIP_RETURN_CODE 77)
  reshard_test(bench_results_schema 10 results_schema_test.py $<TARGET_FILE:sluice-sim>)
  set_tests_properties(bench_results_schema PROPERTIES SKIP_RETURN_CODE 77)
  # What README.md and docs/ tell to run.
  reshard_test(docs_commands 10 docs_commands_test.py $<TARGET_FILE:sluice-sim>)
  set_tests_properties(docs_commands PROPERTIES PROCESSORS 2)
  if(SLUICE_OPEN_MPI)
    reshard_test(reshard_denied_calls 10 denied_calls_test.py $<TARGET_FILE:deny_calls>)
    set_tests_properties(reshard_denied_calls PROPERTIES SKIP_RETURN_CODE 77)
  endif()
endif()

# Files are read and mapped where a sandbox refuses statx, too. What alignment a file wants is found
# by trying then, so there are more requests.
foreach(source file mmap)
  get_property(command GLOBAL PROPERTY SLUICE_COMMAND_${source}_source_test)
  list(POP_FRONT command program)
  add_test(NAME ${source}_source_denied_test
    COMMAND deny_calls statx $<TARGET_FILE:${program}> ${command}
            --gtest_filter=-*PartsOfAnyLengthArrive*)
  set_tests_properties(${source}_source_denied_test PROPERTIES LABELS programs SKIP_RETURN_CODE 77)
endforeach()

# The same between processes that each have a GPU of the fake CUDA runtime.
if(TARGET sluice-bench-fake-gpu)
  foreach(np 2 5)
    reshard_program_test(reshard_fake_gpu_mpi_np${np} ${np} sluice-bench-fake-gpu
                         reshard_random_test.py ${np} 2 --device cuda)
    reshard_program_test(reshard_fake_gpu_mixed_np${np} ${np} sluice-bench-fake-gpu
                         reshard_random_test.py ${np} 3 --src-device cuda)
    foreach(transport nccl cuda_ipc)
      reshard_program_test(reshard_fake_gpu_${transport}_np${np} ${np} sluice-bench-fake-gpu
                           reshard_random_test.py ${np} 4 --device cuda --transport ${transport})
    endforeach()
    foreach(kind mpi mixed nccl cuda_ipc)
      set_property(TEST reshard_fake_gpu_${kind}_np${np} APPEND PROPERTY LABELS cuda)
      # A GPU for each; and processes end one after the other.
      set_property(TEST reshard_fake_gpu_${kind}_np${np} APPEND PROPERTY ENVIRONMENT
                   FAKE_CUDA_DEVICES=${np} FAKE_CUDA_FREE_WHILE_OPEN=1)
    endforeach()
    set_property(TEST reshard_fake_gpu_nccl_np${np} APPEND PROPERTY LABELS nccl)
  endforeach()
  reshard_program_test(bench_doctor_fake_gpu 5 sluice-bench-fake-gpu doctor_test.py --fake-gpu)
  set_property(TEST bench_doctor_fake_gpu APPEND PROPERTY LABELS cuda nccl)
  set_property(TEST bench_doctor_fake_gpu APPEND PROPERTY ENVIRONMENT FAKE_CUDA_FREE_WHILE_OPEN=1)
  if(SLUICE_OPEN_MPI)
    add_test(NAME gpu_check
      COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/mpi_tests/gpu_check_test.py
              ${PROJECT_SOURCE_DIR}/scripts/gpu_check.sh $<TARGET_FILE:sluice-bench-fake-gpu>)
    set_tests_properties(gpu_check PROPERTIES LABELS "mpi;cuda;nccl"
                         ENVIRONMENT FAKE_CUDA_FREE_WHILE_OPEN=1)
  endif()
endif()

if(TARGET sluice_baselines)
  sluice_mpi_test(baselines_mpi_test NPS 1 2 3 5 8 16
    SOURCES baselines_mpi_test.cc baselines_parts_mpi_test.cc
    DEPS layout_oracle sluice_baselines sluice::sluice sluice::mpi absl::strings)
endif()

# Two nodes that are namespaces of this machine; only root may make them.
if(TARGET sluice-bench AND SLUICE_OPEN_MPI)
  add_executable(two_nodes_rank two_nodes_rank.cc)
  target_link_libraries(two_nodes_rank PRIVATE MPI::MPI_CXX)
  sluice_flags(two_nodes_rank tool)
  add_test(NAME two_nodes
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/mpi_tests/two_nodes_test.py
            ${PROJECT_SOURCE_DIR}/scripts/two_nodes.sh $<TARGET_FILE:two_nodes_rank>
            $<TARGET_FILE:sluice-bench>)
  set_tests_properties(two_nodes PROPERTIES LABELS "mpi;nodes"
                                            SKIP_RETURN_CODE 77)
  add_test(NAME compare_wires
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/measure/compare.py wires --rounds 2
            --iters 1 --from 64K --to 256K --wires tcp --bin $<TARGET_FILE_DIR:sluice-bench>
            --json ${CMAKE_CURRENT_BINARY_DIR}/compare-wires.json)
  set_tests_properties(compare_wires PROPERTIES LABELS "mpi;nodes"
                                                SKIP_RETURN_CODE 77)
endif()
