// Noting SIGINT.
#include "simulate/interrupt.h"

#include <csignal>

namespace sluice::bench {
namespace {

volatile std::sig_atomic_t noted = 0;

void Note(int signal) {
  noted = 1;
  std::signal(signal, SIG_DFL);
}

}  // namespace

Interrupt::Interrupt() {
  noted = 0;
  before_ = std::signal(SIGINT, Note);
}

Interrupt::~Interrupt() { std::signal(SIGINT, before_); }

bool Interrupt::came() const { return noted != 0; }

}  // namespace sluice::bench
