package proctest

import (
	"bytes"
	"sync"
)

// Output collects what a process writes while a test reads it. The zero value is empty.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *Output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text) //nolint:wrapcheck // A buffer has no errors.
}

// String returns what was written since the last Reset.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Reset forgets what was written.
func (o *Output) Reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Reset()
}
