package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	now := time.Unix(0, 0)
	p := (&Terminal{Stderr: &out, Watches: true}).NewProgress("export")
	p.now = func() time.Time { return now }
	show := func(text string) { p.Update(func() string { return text }) }
	show("1 of 3")
	show("2 of 3") // Too soon.
	now = now.Add(time.Second)
	show("3 of 3")
	p.Line("done")
	p.End()
	require.Equal(t, "\r\x1b[Kexport: 1 of 3\r\x1b[Kexport: 3 of 3\r\x1b[Kexport: done\n", out.String())

	out.Reset()
	p = (&Terminal{Stderr: &out}).NewProgress("export")
	p.now = func() time.Time { return now }
	show("1 of 3")
	now = now.Add(time.Second)
	show("2 of 3")
	now = now.Add(10 * time.Second)
	show("3 of 3")
	p.End()
	require.Equal(t, "export: 1 of 3\nexport: 3 of 3\n", out.String())

	require.Equal(t, ", about 30s left", Remaining(10*time.Second, 0.2, 0.4))
	require.Empty(t, Remaining(10*time.Second, 0.4, 0.4))
	require.Empty(t, Remaining(10*time.Second, 0.4, 1))
}
