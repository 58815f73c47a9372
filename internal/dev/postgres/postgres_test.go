package postgres

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/dev/command"
)

func TestStartReportsWhyEachOptionFailed(t *testing.T) {
	t.Parallel()
	failing := func(advice, reason string) option {
		return option{advice, func(context.Context) (*state, error) { return nil, errors.New(reason) }}
	}
	var output bytes.Buffer
	s := starter{options: Options{URLVariable: "DATABASE_URL"}, progress: &command.Progress{W: &output}}
	_, err := s.try(t.Context(), []option{failing("install it", "it is not there"), failing("be root", "you are not")})
	require.EqualError(t, err, `no TimescaleDB could be found or started; do one of these:
  1. set DATABASE_URL to a PostgreSQL that preloads TimescaleDB 2.19 or later
     (now: DATABASE_URL is not set)
  2. install it
     (now: it is not there)
  3. be root
     (now: you are not)`)
	require.Equal(t, "TimescaleDB: it is not there; trying the next option\n", output.String())
}

func TestURLEscapesThePassword(t *testing.T) {
	t.Parallel()
	st := &state{Port: 5432, Password: `a/b:c@d?e"f`}
	u, err := url.Parse(st.url())
	require.NoError(t, err)
	password, _ := u.User.Password()
	require.Equal(t, st.Password, password)
	require.Equal(t, "127.0.0.1:5432", u.Host)
}
