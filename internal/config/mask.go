package config

import (
	"io"
	"regexp"
	"sync"
)

// hidden stands for every secret that would be printed.
const hidden = "xxxxx"

// The places in which a URL carries a secret: the password of its user, a user
// alone where that is a token (NATS), and a password as a parameter.
var (
	passwordInURL = regexp.MustCompile(`(://[^:/?#\s"]*:)[^/?#\s"]*@`)
	tokenInURL    = regexp.MustCompile(`((?:nats|tls|wss?)://)[^:/?#@\s"]+@`)
	passwordParam = regexp.MustCompile(`(?i)([?&](?:ssl)?password=)[^&\s"]*`)
)

// Mask hides the secrets of every URL in a text.
func Mask(text string) string {
	text = passwordInURL.ReplaceAllString(text, "${1}"+hidden+"@")
	text = tokenInURL.ReplaceAllString(text, "${1}"+hidden+"@")
	return passwordParam.ReplaceAllString(text, "${1}"+hidden)
}

// maskingWriter masks what passes through it.
type maskingWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

// MaskingWriter masks every text that is written to it in one piece. Logs and
// messages go through it, because a library may repeat a URL in an error. Many
// may write to it at once.
func MaskingWriter(w io.Writer) io.Writer { return maskingWriter{&sync.Mutex{}, w} }

func (m maskingWriter) Write(text []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := io.WriteString(m.w, Mask(string(text))); err != nil {
		return 0, err //nolint:wrapcheck // A writer's error is its caller's.
	}
	return len(text), nil
}
