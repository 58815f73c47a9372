package config

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"

	"github.com/rs/zerolog"
)

// masked replaces each secret.
const masked = "xxxxx"

// The places in which a URL carries a secret: the password of its user, a user without a password where that is a token
// (NATS), and a password as a parameter. The secret of a key follows its public id (key format rule, decision 24).
var (
	passwordInURL = regexp.MustCompile(`(://[^:/?#\s"]*:)[^/?#\s"]*@`)
	tokenInURL    = regexp.MustCompile(`((?:nats|tls|wss?)://)[^:/?#@\s"]+@`)
	passwordParam = regexp.MustCompile(`(?i)([?&](?:ssl)?password=)[^&\s"]*`)
	secretOfKey   = regexp.MustCompile(`(?i)(\brs[ki]_[0-9A-Za-z-]+_)[^\s"&?#\\]+`)
)

// Mask replaces the secrets of all URLs and keys in a text.
func Mask(text string) string {
	// Most lines of a log have none of these, and the regular expressions take 50 microseconds for one.
	lower := strings.ToLower(text)
	if strings.Contains(lower, "://") {
		text = passwordInURL.ReplaceAllString(text, "${1}"+masked+"@")
		text = tokenInURL.ReplaceAllString(text, "${1}"+masked+"@")
	}
	if strings.Contains(lower, "password=") {
		text = passwordParam.ReplaceAllString(text, "${1}"+masked)
	}
	if strings.Contains(lower, "rsk_") || strings.Contains(lower, "rsi_") {
		text = secretOfKey.ReplaceAllString(text, "${1}"+masked)
	}
	return text
}

// maskingWriter masks what is written to w.
type maskingWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

// MaskingWriter returns a writer that masks the secrets in each text that is written in one call. Logs and messages
// pass through it, because a library may repeat a URL in an error. It is safe for concurrent use.
func MaskingWriter(w io.Writer) io.Writer { return maskingWriter{&sync.Mutex{}, w} }

func (m maskingWriter) Write(text []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := io.WriteString(m.w, Mask(string(text))); err != nil {
		return 0, err //nolint:wrapcheck // The caller wraps the errors of its writer.
	}
	return len(text), nil
}

// logSettings logs each setting of a configuration under the name of its flag, with underscores. Secrets are masked. A
// setting without a value is left out.
func logSettings(e *zerolog.Event, cfg any) {
	for _, flag := range flagsOf(cfg) {
		name, value := strings.ReplaceAll(flag.Name, "-", "_"), flag.Target.Interface()
		if !flag.Tag.Has("setting") || flag.Target.IsZero() && !flag.HasDefault {
			continue
		}
		if text, ok := value.(fmt.Stringer); ok {
			e.Stringer(name, text)
		} else {
			e.Interface(name, value)
		}
	}
}
