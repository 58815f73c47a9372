package config

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// ValueError is an invalid value of a setting. Its text names the flag and the variable and says what to give instead.
type ValueError struct {
	Flag   string // without its dashes
	Reason string // a sentence without its subject
}

func (p *ValueError) Error() string {
	return fmt.Sprintf("--%s (%s) %s", p.Flag, Variable(p.Flag), p.Reason)
}

// Variable returns the environment variable of a flag: STREAM_KEEP for stream-keep.
func Variable(flag string) string {
	return strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// FileVariable returns the environment variable with the file of a secret: DATABASE_URL_FILE for database-url.
func FileVariable(flag string) string { return Variable(flag) + "_FILE" }

// rules are the rules of texts, by the value of the tag rule.
var rules = map[string]func(value string) error{
	"address": address, "api-key": apiKey, "certificates": certificates, "collector-url": collectorURL,
	"dashboard-url": func(value string) error { return dashboardURL(strings.TrimRight(value, "/")) },
	"database-url":  databaseURL, "ingest-key": ingestKey, "log-level": logLevel, "mail-address": mailAddress,
	"mqtt-url":   mqttURL,
	"public-url": publicURL, "queue-url": queueURL, "ratio": ratio, "region": region,
	"role-prefix": rolesPrefix, "sampler": samplerName, "service-url": serviceURL,
	"smtp-url": smtpURL, "web-url": webURL,
}

// validate checks each setting of a configuration by its tags: rule names the rule of a text, which may be empty if it
// has the tag implied, min is the least value, and positive forbids 0. An error is a *ValueError.
func validate(cfg any) error {
	for _, flag := range flagsOf(cfg) {
		var err error
		value, rule, least := flag.Target, flag.Tag.Get("rule"), flag.Tag.Get("min")
		text := value.String()
		if secret, ok := reflect.TypeAssert[Secret](value); ok {
			text, err = secret.Read()
		}
		switch {
		case err != nil:
		case rule != "" && (text != "" || !flag.Tag.Has("implied")):
			err = rules[rule](text)
		case least != "" && value.Int() < parsed(value.Type(), least):
			err = fmt.Errorf("must be at least %s", least)
		case flag.Tag.Has("positive") && value.Int() <= 0:
			err = errNotPositive
		}
		if err != nil {
			return &ValueError{Flag: flag.Name, Reason: err.Error()}
		}
	}
	return nil
}

var errNotPositive = errors.New("must be above 0")

// parsed returns the number of a text of a type. A wrong text is 0.
func parsed(of reflect.Type, text string) int64 {
	value := reflect.New(of)
	if v, ok := reflect.TypeAssert[encoding.TextUnmarshaler](value); ok {
		_ = v.UnmarshalText([]byte(text)) // The tags are constant.
	}
	return value.Elem().Int()
}

// flagsOf returns the flags of a configuration.
func flagsOf(cfg any) []*kong.Flag {
	model, err := kong.New(cfg)
	if err != nil {
		panic(fmt.Sprintf("the flags of %T are invalid: %v", cfg, err)) // A test validates and logs each configuration.
	}
	return model.Model.Flags
}

// Defaults returns a configuration with the default of every flag, for callers that do not parse a command line. It
// does not validate: settings without a default are empty.
func Defaults[T any]() T {
	var cfg T
	var command *kong.Context
	model, err := kong.New(&cfg)
	if err == nil {
		command, err = kong.Trace(model, nil)
	}
	if err == nil {
		err = command.ApplyDefaults()
	}
	if err != nil {
		panic(fmt.Sprintf("the defaults of %T are invalid: %v", cfg, err)) // A test reads all defaults.
	}
	return cfg
}

const never = "never"

// maxDuration is longer than any plausible retention or history. It keeps sums of durations and times in range.
const maxDuration = 100 * 365 * 24 * time.Hour

var durationUnits = []unit{
	{"d", int64(24 * time.Hour)}, {"h", int64(time.Hour)}, {"m", int64(time.Minute)}, {"s", int64(time.Second)},
}

// Duration is a length of time, written as a whole number above 0 and s, m, h or d: 30s, 90m, 24h or 7d.
type Duration time.Duration

// UnmarshalText parses a duration of at most 100 years.
func (d *Duration) UnmarshalText(text []byte) error {
	n, ok := parseUnits(string(text), durationUnits)
	if !ok || n == 0 || n > int64(maxDuration) {
		return fmt.Errorf("%q is not a duration. Write a whole number above 0 and s, m, h or d, "+
			"for example 30s, 90m, 24h or 7d", text)
	}
	*d = Duration(n)
	return nil
}

func (d Duration) String() string { return formatUnits(int64(d), durationUnits) }

// Delay is a duration of at most a minute, which may be 0s.
type Delay time.Duration

// maxDelay leaves an orchestrator that waits for it time for the shutdown itself.
const maxDelay = time.Minute

// UnmarshalText parses a duration from 0s to 1m.
func (d *Delay) UnmarshalText(text []byte) error {
	*d = 0
	if string(text) == "0s" {
		return nil
	}
	if err := (*Duration)(d).UnmarshalText(text); err != nil || time.Duration(*d) > maxDelay {
		return fmt.Errorf("%q is not a delay. Write 0s to 60s", text)
	}
	return nil
}

func (d Delay) String() string {
	if d == 0 {
		return "0s"
	}
	return Duration(d).String()
}

// Age is an age at which something happens to old data: a duration, or never, which is 0.
type Age time.Duration

// UnmarshalText parses a duration or the word never.
func (a *Age) UnmarshalText(text []byte) error {
	*a = 0
	if string(text) == never {
		return nil
	}
	if err := (*Duration)(a).UnmarshalText(text); err != nil {
		return fmt.Errorf("%w, or the word never", err)
	}
	return nil
}

func (a Age) String() string {
	if a == 0 {
		return never
	}
	return Duration(a).String()
}

// ChunkInterval is the length of the chunks of new readings: a duration, ChunkIntervalUnchanged or ChunkIntervalAuto.
type ChunkInterval time.Duration

// The values of a ChunkInterval that are not a length.
const (
	ChunkIntervalUnchanged ChunkInterval = 0
	ChunkIntervalAuto      ChunkInterval = -1 // chosen by the number of devices and the memory of the server
)

const auto = "auto"

// UnmarshalText parses a duration or the word auto.
func (c *ChunkInterval) UnmarshalText(text []byte) error {
	*c = ChunkIntervalAuto
	if string(text) == auto {
		return nil
	}
	if err := (*Duration)(c).UnmarshalText(text); err != nil {
		return fmt.Errorf("%w, or the word auto", err)
	}
	return nil
}

func (c ChunkInterval) String() string {
	switch c {
	case ChunkIntervalUnchanged:
		return ""
	case ChunkIntervalAuto:
		return auto
	}
	return Duration(c).String()
}

// The units of a Size.
const (
	MiB Size = 1 << 20
	GiB Size = 1 << 30
	TiB Size = 1 << 40
)

var sizeUnits = []unit{{"TiB", int64(TiB)}, {"GiB", int64(GiB)}, {"MiB", int64(MiB)}}

// Size is a number of bytes, written as a whole number above 0 of MiB, GiB or TiB: 8GiB.
type Size int64

// UnmarshalText parses a size.
func (s *Size) UnmarshalText(text []byte) error {
	n, ok := parseUnits(string(text), sizeUnits)
	if !ok || n == 0 {
		return fmt.Errorf("%q is not a size. Write a whole number above 0 of MiB, GiB or TiB, for example 8GiB", text)
	}
	*s = Size(n)
	return nil
}

func (s Size) String() string { return formatUnits(int64(s), sizeUnits) }

// unit is a suffix of a value and its factor.
type unit struct {
	suffix string
	factor int64
}

// parseUnits parses a whole number without a sign and one of the units. It reports false for any other text and for a
// value that does not fit.
func parseUnits(text string, units []unit) (n int64, ok bool) {
	for _, u := range units {
		digits, found := strings.CutSuffix(text, u.suffix)
		if !found {
			continue
		}
		parsed, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || int64(parsed) > math.MaxInt64/u.factor {
			return 0, false
		}
		return int64(parsed) * u.factor, true
	}
	return 0, false
}

// formatUnits formats a value in the largest unit of which it is a multiple.
func formatUnits(n int64, units []unit) string {
	for _, u := range units {
		if n%u.factor == 0 {
			return strconv.FormatInt(n/u.factor, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10)
}

// DailyWindow is a part of each day in UTC, written as 02:00-04:00, or never. It may extend over midnight. The zero
// value is never.
type DailyWindow struct {
	from, to time.Duration // since midnight
}

// clockLayout is how both ends of a DailyWindow are written.
const clockLayout = "15:04"

var errDailyWindow = errors.New("must be two different times of the day in UTC, for example 02:00-04:00, " +
	"or the word never")

// UnmarshalText parses a window.
func (w *DailyWindow) UnmarshalText(text []byte) error {
	*w = DailyWindow{}
	if string(text) == never {
		return nil
	}
	first, last, found := strings.Cut(string(text), "-")
	from, fromOK := sinceMidnight(first)
	to, toOK := sinceMidnight(last)
	if !found || !fromOK || !toOK || from == to {
		return errDailyWindow
	}
	w.from, w.to = from, to
	return nil
}

func sinceMidnight(text string) (time.Duration, bool) {
	at, err := time.Parse(clockLayout, text)
	ok := err == nil && len(text) == len(clockLayout)
	return time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute, ok
}

// Contains reports whether a time is in the window.
func (w DailyWindow) Contains(t time.Time) bool {
	at := t.UTC().Sub(t.UTC().Truncate(24 * time.Hour))
	if w.from <= w.to {
		return w.from <= at && at < w.to
	}
	return at >= w.from || at < w.to
}

func (w DailyWindow) String() string {
	if w.from == w.to {
		return never
	}
	format := func(d time.Duration) string { return time.Time{}.Add(d).Format(clockLayout) }
	return format(w.from) + "-" + format(w.to)
}
