package config

import (
	"io"
	"regexp"
	"sync"
)

// hidden stands for every secret that would be printed.
const hidden = "xxxxx"

// The places in which a URL carries a secret: the password of its user, a user
// alone where that is a token (NATS), and a password as a parameter. The secret
// of a key comes after its public id (decision 24).
var (
	passwordInURL = regexp.MustCompile(`(://[^:/?#\s"]*:)[^/?#\s"]*@`)
	tokenInURL    = regexp.MustCompile(`((?:nats|tls|wss?)://)[^:/?#@\s"]+@`)
	passwordParam = regexp.MustCompile(`(?i)([?&](?:ssl)?password=)[^&\s"]*`)
	secretOfKey   = regexp.MustCompile(`(?i)(\brs[ki]_[0-9A-Za-z-]+_)[^\s"&?#\\]+`)
)

// Mask hides the secrets of every URL and every key in a text.
func Mask(text string) string {
	text = passwordInURL.ReplaceAllString(text, "${1}"+hidden+"@")
	text = tokenInURL.ReplaceAllString(text, "${1}"+hidden+"@")
	text = passwordParam.ReplaceAllString(text, "${1}"+hidden)
	return secretOfKey.ReplaceAllString(text, "${1}"+hidden)
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
