package process

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/rs/zerolog"

	"roomsensor/internal/config"
)

// LogLevel is the lowest level that a process logs, which may change while it runs. The sampler of the logger of the
// process is its LogLevel.
type LogLevel struct{ level atomic.Int32 }

// NewLogLevel returns the level of a configuration.
func NewLogLevel(cfg config.Log) *LogLevel {
	l := &LogLevel{}
	l.set(cfg.Level())
	return l
}

// Sample implements zerolog.Sampler.
func (l *LogLevel) Sample(level zerolog.Level) bool { return level >= l.get() }

func (l *LogLevel) get() zerolog.Level { return zerolog.Level(l.level.Load()) } //nolint:gosec // set stored it.

func (l *LogLevel) set(level zerolog.Level) { l.level.Store(int32(level)) }

// serve answers requests for the level, and changes it until the process ends.
func (l *LogLevel) serve(log zerolog.Logger) http.HandlerFunc {
	const maxBytes = 64
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBytes))
			wanted := config.Log{LogLevel: strings.TrimSpace(string(text))}
			if err != nil || wanted.Validate() != nil {
				writeJSON(w, http.StatusBadRequest, map[string]string{"error": "Send trace, debug, info, warn or error."})
				return
			}
			log.Log().Stringer("from", l.get()).Stringer("to", wanted.Level()).Msg("changed the log level")
			l.set(wanted.Level())
		}
		writeJSON(w, http.StatusOK, map[string]string{"level": l.get().String()})
	}
}
