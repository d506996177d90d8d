// Runs tests on the GPU, or says that there is none and ends with 77.
#include <cuda_runtime_api.h>

#include <cstdio>

#include "gmock/gmock.h"
#include "main/exit_code.h"
#include "main/which_tests.h"

int main(int argc, char** argv) {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess || devices == 0) {
    std::printf("no GPU here: %s\n", cudaGetErrorString(error));
    return sluice::kSomeSkipped;
  }
  testing::InitGoogleMock(&argc, argv);
  sluice::ChooseTests(&argc, argv);
  return sluice::ExitCode(RUN_ALL_TESTS());
}
