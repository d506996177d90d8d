// How slow_fs says why it has not mounted anything.
#ifndef SLUICE_TESTS_FUSE_SLOW_FS_EXIT_H_
#define SLUICE_TESTS_FUSE_SLOW_FS_EXIT_H_

namespace sluice::fuse {

inline constexpr int kSlowFsBadFlags = 2;
inline constexpr int kSlowFsCannotMount = 3;  // the system does not let it

}  // namespace sluice::fuse

#endif  // SLUICE_TESTS_FUSE_SLOW_FS_EXIT_H_
