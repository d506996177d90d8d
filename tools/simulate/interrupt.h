// CTRL-C as a question: a long simulation asks now and then, and ends with what it knows.
#ifndef SLUICE_TOOLS_SIMULATE_INTERRUPT_H_
#define SLUICE_TOOLS_SIMULATE_INTERRUPT_H_

namespace sluice::bench {

// From its making to its end the first SIGINT is only noted; a second one ends the process. One at
// a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool came() const;

 private:
  void (*before_)(int);
};

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_SIMULATE_INTERRUPT_H_
