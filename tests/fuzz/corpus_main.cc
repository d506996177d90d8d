// Runs the fuzz targets without a fuzzer: each on every file of its corpus, and on seeded mutations
// of them.
//
// usage: fuzz_tests TARGET CORPUS_DIRECTORY [MUTATIONS [SEED]]
// A failure aborts; the input that it was on is in ./failed-input then.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz/fuzz_bytes.h"

#define SLUICE_FUZZ_LISTED(name) SLUICE_FUZZ_TARGET(name);
#include "fuzz_targets.inc"
#undef SLUICE_FUZZ_LISTED

namespace {

using Target = int (*)(const uint8_t* data, size_t size);

Target TargetNamed(const std::string& name) {
#define SLUICE_FUZZ_LISTED(target) \
  if (name == #target) return &sluice_fuzz_##target;
#include "fuzz_targets.inc"
#undef SLUICE_FUZZ_LISTED
  return nullptr;
}

// What readers of numbers, names and lists trip over.
const char* const kTokens[] = {"9223372036854775807",
                               "9223372036854775808",
                               "18446744073709551616",
                               "4294967296",
                               "-1",
                               "0",
                               "1e308",
                               "1.5",
                               "\"\"",
                               "\"..\"",
                               "\"/\"",
                               "\\u0000",
                               "\xff",
                               "[",
                               "]",
                               "{",
                               "}",
                               ",",
                               ":",
                               "null",
                               "'",
                               "(",
                               ")",
                               "True"};

std::string current_input;  // NOLINT(google-readability-global): for the signal handler

void KeepInput(int signal) {
  if (std::FILE* file = std::fopen("failed-input", "wb"); file != nullptr) {
    std::fwrite(current_input.data(), 1, current_input.size(), file);
    std::fclose(file);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void Run(Target target, std::string input) {
  current_input = std::move(input);
  // A copy of the exact size, so that the address sanitizer sees a read past its end.
  const std::vector<uint8_t> bytes(current_input.begin(), current_input.end());
  target(bytes.data(), bytes.size());
}

class Mutator {
 public:
  Mutator(const std::vector<std::string>& corpus, unsigned seed) : corpus_(corpus), random_(seed) {}

  std::string Next() {
    std::string text = corpus_[Below(corpus_.size())];
    for (size_t k = 1 + Below(4); k > 0; --k) Mutate(&text);
    return text;
  }

 private:
  size_t Below(size_t n) { return n == 0 ? 0 : random_() % n; }

  void Mutate(std::string* text) {
    const size_t at = Below(text->size() + 1);
    const size_t count = std::min(Below(16), text->size() - at);
    switch (Below(7)) {
      case 0:  // flip a bit
        if (at < text->size()) (*text)[at] = static_cast<char>((*text)[at] ^ (1 << Below(8)));
        break;
      case 1:
        text->erase(at, count);
        break;
      case 2:
        text->insert(at, kTokens[Below(std::size(kTokens))]);
        break;
      case 3:  // replace what stands there
        text->replace(at, count, kTokens[Below(std::size(kTokens))]);
        break;
      case 4:  // repeat a piece elsewhere
        text->insert(Below(text->size() + 1), text->substr(at, 4 * count));
        break;
      case 5: {  // go on as another file does
        const std::string& other = corpus_[Below(corpus_.size())];
        text->resize(at);
        *text += other.substr(std::min(at, other.size()));
        break;
      }
      default:
        text->resize(at);
    }
  }

  const std::vector<std::string>& corpus_;
  std::mt19937 random_;
};

std::vector<std::string> ReadCorpus(const char* directory) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());  // the same mutations everywhere
  std::vector<std::string> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

}  // namespace

int main(int argc, char** argv) {
  const Target target = argc > 2 ? TargetNamed(argv[1]) : nullptr;
  const std::vector<std::string> corpus =
      target != nullptr ? ReadCorpus(argv[2]) : std::vector<std::string>();
  if (corpus.empty()) {
    std::fprintf(stderr, "usage: %s TARGET CORPUS_DIRECTORY [MUTATIONS [SEED]]\n", argv[0]);
    return EXIT_FAILURE;
  }
  std::signal(SIGABRT, KeepInput);
  std::signal(SIGSEGV, KeepInput);
  const long mutations = argc > 3 ? std::strtol(argv[3], nullptr, 10) : 5000;
  const auto seed = static_cast<unsigned>(argc > 4 ? std::strtoul(argv[4], nullptr, 10) : 1);
  for (const std::string& input : corpus) Run(target, input);
  Mutator mutator(corpus, seed);
  for (long i = 0; i < mutations; ++i) Run(target, mutator.Next());
  std::printf("%zu files and %ld mutations of them, seed %u: all right\n", corpus.size(), mutations,
              seed);
  return EXIT_SUCCESS;
}
