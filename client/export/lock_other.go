//go:build !unix

package export

// lock does nothing: other systems have no flock.
func lock(string) (unlock func(), err error) { return func() {}, nil }
