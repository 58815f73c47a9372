package cli

import (
	"os/user"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

func TestOperatorOf(t *testing.T) {
	t.Parallel()
	require.Equal(t, roomsensor.Actor{Kind: roomsensor.ActorOperator, Name: "kim"},
		OperatorOf(func() (*user.User, error) { return &user.User{Username: "kim"}, nil }))
	require.Regexp(t, `^uid \d+$`, OperatorOf(func() (*user.User, error) { return nil, user.UnknownUserIdError(7) }).Name)
}
