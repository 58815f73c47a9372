package secretscan

import (
	"os"
	"regexp"
	"sync"
)

// internals match what only the inside of a service can know: SQL, stack traces, drivers, libraries and addresses.
// Ordinary words such as "column" or "unexpected" are not in them, so that error messages may use them. There are
// several because Go matches a large expression much more slowly.
var internals = []*regexp.Regexp{
	// SQL and the messages of PostgreSQL.
	regexp.MustCompile(`(?i)(?-i:\bSELECT\b|\bINSERT INTO\b|\bUPDATE\b.+\bSET\b|\bDELETE FROM\b|\bERROR: )|` +
		`\bsqlstate\b|relation "|column "|violates .* constraint|` +
		`duplicate key value|syntax error|postgres|timescale|\bpgx|\bpgconn\b|\bpq:`),
	// The queue, the network and the operating system.
	regexp.MustCompile(`(?i)\bnats\b|jetstream|\bdial tcp\b|\bi/o timeout\b|connection (refused|reset)|broken pipe|` +
		`context (canceled|deadline)|\bdeadline exceeded\b|localhost|\b127\.0\.0\.1\b|\berrno\b|\bsyscall\b`),
	// Stack traces, Go's own formatting and its packages.
	regexp.MustCompile(`(?i)goroutine \d|\bpanic: |\bruntime error|\bruntime\.|\w\.go\b|\.sql\b|0x[0-9a-f]{6}|%!|<nil>|` +
		`\bstrconv\b|\bjson: |\bjsontext\b|net/http|\buuid: |invalid UUID|` +
		`invalid character|unexpected (EOF|end of)|\bEOF\b|\becho: `),
}

// hostName matches the name of this machine; nil if it has none.
var hostName = sync.OnceValue(func() *regexp.Regexp {
	host, err := os.Hostname()
	if err != nil || host == "" {
		return nil
	}
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(host) + `\b`)
})

// Internals returns what a response must not show (decision 36): SQL, a stack trace, a host name or the text of a
// library.
func Internals(text string) (found []string) {
	for _, pattern := range internals {
		found = append(found, pattern.FindAllString(text, -1)...)
	}
	if host := hostName(); host != nil {
		found = append(found, host.FindAllString(text, -1)...)
	}
	return found
}
