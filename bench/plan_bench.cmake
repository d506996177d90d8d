# What planning costs one rank.
add_executable(plan_bench plan_bench.cc)
target_include_directories(plan_bench PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(plan_bench PRIVATE sluice_workload sluice_plan CLI11::CLI11)
sluice_flags(plan_bench program)
