package natsserver

import (
	"fmt"

	"github.com/rs/zerolog"
)

// logger passes on what the server says. What is fatal to the server ends its start, not this process.
type logger struct {
	log   zerolog.Logger
	fatal chan error
}

func (l *logger) Noticef(format string, args ...any) { l.log.Debug().Msgf("NATS: "+format, args...) }
func (l *logger) Warnf(format string, args ...any)   { l.log.Warn().Msgf("NATS: "+format, args...) }
func (l *logger) Errorf(format string, args ...any)  { l.log.Error().Msgf("NATS: "+format, args...) }

func (l *logger) Debugf(format string, args ...any) { l.log.Trace().Msgf("NATS: "+format, args...) }

func (l *logger) Tracef(format string, args ...any) { l.log.Trace().Msgf("NATS: "+format, args...) }

// Fatalf keeps the first cause; what follows from it is only logged.
func (l *logger) Fatalf(format string, args ...any) {
	l.log.Error().Msgf("NATS: "+format, args...)
	select {
	case l.fatal <- fmt.Errorf(format, args...):
	default:
	}
}
