//go:build !linux

package natstest

// memoryDir returns no directory: only Linux has a file system in memory everywhere.
func memoryDir() (dir string, ok bool) { return "", false }
