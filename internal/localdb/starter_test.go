package localdb

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheWaysThatFailAreToldOnceEach(t *testing.T) {
	t.Parallel()
	failing := func(advice, reason string) way {
		return way{advice, func(context.Context) (*state, error) { return nil, errors.New(reason) }}
	}
	var told bytes.Buffer
	s := starter{options: Options{URLVariable: "DATABASE_URL"}, progress: &progress{&told}}
	_, err := s.startBy(t.Context(), []way{failing("install it", "it is not there"), failing("be root", "you are not")})
	require.EqualError(t, err, `no TimescaleDB could be found or started; any one of these helps:
  1. set DATABASE_URL to a PostgreSQL that preloads TimescaleDB 2.19 or later
     (now: DATABASE_URL is not set)
  2. install it
     (now: it is not there)
  3. be root
     (now: you are not)`)
	require.Equal(t, "TimescaleDB: it is not there; trying the next way\n", told.String())
}
