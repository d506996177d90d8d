// Keeps track of the open objects of a source, and chooses which to close when there are too many.
// Opens, closes and reads nothing itself.
#ifndef SLUICE_SRC_STORAGE_FILE_OPEN_FILES_H_
#define SLUICE_SRC_STORAGE_FILE_OPEN_FILES_H_

#include <cstdint>
#include <list>
#include <vector>

#include "storage/file/file_facts.h"

namespace sluice {

class OpenFiles {
 public:
  enum class State : uint8_t {
    kClosed,
    kWanted,   // waits for another to be closed
    kOpening,  // counts as open
    kOpen,
  };
  struct File {
    State state = State::kClosed;
    bool refuses_direct = false;  // its file system does not know O_DIRECT
    int fd = -1;
    FileFacts facts;
    int reads = 0;  // in flight; 0: it may be closed
    std::list<int>::iterator place;
  };

  OpenFiles(int objects, int open_max);

  File& operator[](int object) { return files_[static_cast<size_t>(object)]; }
  int object_of(const File& file) const { return static_cast<int>(&file - files_.data()); }
  int open() const { return open_; }
  // Below what is open now, if that is more than the process can have.
  void set_open_max(int open_max) { open_max_ = open_max; }

  // From kClosed to kWanted.
  void Want(int object);
  // The object to open next, which is kOpening then, or -1. Also gives the object that must be
  // closed for it, and its descriptor, or -1.
  int NextToOpen(int* object_to_close, int* fd_to_close);
  // From kOpening to kOpen, with no reads.
  void Opened(int object, int fd, const FileFacts& facts);
  // From kOpening to kClosed.
  void Failed(int object);
  // Count its reads.
  void BeginRead(int object);
  void EndRead(int object);

 private:
  std::vector<File> files_;
  int open_max_;
  int open_ = 0;
  // Each object that was ever wanted is in one of these.
  std::list<int> closed_;
  std::list<int> wanted_;  // the one that waits longest first
  std::list<int> busy_;    // opening, or with reads
  std::list<int> idle_;    // the longest idle first
};

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_FILE_OPEN_FILES_H_
