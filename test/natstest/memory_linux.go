package natstest

import "syscall"

// minMemory is the free space in bytes from which on tests use a file system in memory. The streams of all tests that
// run at once take a small part of it.
const minMemory = 4 << 30

// memoryDir returns the directory of a file system in memory.
func memoryDir() (dir string, ok bool) {
	const tmpfs, shm = 0x01021994, "/dev/shm"
	var fs syscall.Statfs_t
	err := syscall.Statfs(shm, &fs)
	free := fs.Bavail * uint64(fs.Bsize) //nolint:gosec // A size is positive.
	return shm, err == nil && fs.Type == tmpfs && free >= minMemory
}
