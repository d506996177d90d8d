// The lists of objects by how open they are.
#include "storage/file/open_files.h"

#include "tensor/check.h"

namespace sluice {

OpenFiles::OpenFiles(int objects, int open_max)
    : files_(static_cast<size_t>(objects)), open_max_(open_max) {
  for (File& file : files_) file.place = closed_.end();
}

void OpenFiles::Want(int object) {
  File& file = (*this)[object];
  SLUICE_CHECK(file.state == State::kClosed, "wants a file that is open");
  if (file.place == closed_.end()) file.place = closed_.insert(closed_.end(), object);
  file.state = State::kWanted;
  wanted_.splice(wanted_.end(), closed_, file.place);
}

int OpenFiles::NextToOpen(int* object_to_close, int* fd_to_close) {
  *object_to_close = *fd_to_close = -1;
  if (wanted_.empty()) return -1;
  if (open_ >= open_max_) {
    if (idle_.empty()) return -1;
    File& idle = (*this)[idle_.front()];
    *object_to_close = object_of(idle);
    *fd_to_close = idle.fd;
    idle.fd = -1;
    idle.state = State::kClosed;
    closed_.splice(closed_.end(), idle_, idle.place);
    --open_;
  }
  const int object = wanted_.front();
  (*this)[object].state = State::kOpening;
  busy_.splice(busy_.end(), wanted_, wanted_.begin());
  ++open_;
  return object;
}

void OpenFiles::Opened(int object, int fd, const FileFacts& facts) {
  File& file = (*this)[object];
  SLUICE_CHECK(file.state == State::kOpening, "opened a file that is not being opened");
  file.state = State::kOpen;
  file.fd = fd;
  file.facts = facts;
  idle_.splice(idle_.end(), busy_, file.place);
}

void OpenFiles::Failed(int object) {
  File& file = (*this)[object];
  SLUICE_CHECK(file.state == State::kOpening, "failed to open a file that is not being opened");
  file.state = State::kClosed;
  closed_.splice(closed_.end(), busy_, file.place);
  --open_;
}

void OpenFiles::BeginRead(int object) {
  File& file = (*this)[object];
  if (file.reads++ == 0) busy_.splice(busy_.end(), idle_, file.place);
}

void OpenFiles::EndRead(int object) {
  File& file = (*this)[object];
  if (--file.reads == 0) idle_.splice(idle_.end(), busy_, file.place);
}

}  // namespace sluice
