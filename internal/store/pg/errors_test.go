package pg

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// TestTranslateWrite checks which failures concern a part of a batch and which ones concern the whole database.
func TestTranslateWrite(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		states                        []string
		permanent, refused, isBlocked bool
	}{
		{states: []string{"22003", "23502", "23514"}, permanent: true, refused: true},
		{states: []string{"53200", "53400", "54000", "0A000", "55000", "XX000", "XX002", "P0001", "57014", "42P01", "99999"}, refused: true},
		{states: []string{"23505", "55P03", "40001", "40P01", "58030"}, isBlocked: true},
		{states: []string{"08006", "53100", "53300", "57P01", "57P03", "25006"}},
	} {
		for _, state := range test.states {
			err := TranslateWrite(fmt.Errorf("inserting: %w", &pgconn.PgError{Code: state}))
			require.Equal(t, test.permanent, errors.Is(err, roomsensor.ErrNotStorable), state)
			require.Equal(t, test.refused, errors.Is(err, roomsensor.ErrRefused), state)
			require.Equal(t, test.isBlocked, errors.Is(err, roomsensor.ErrBlocked), state)
			var overloaded *roomsensor.Error
			if !test.refused {
				require.ErrorAs(t, err, &overloaded, state)
			}
		}
	}
}
