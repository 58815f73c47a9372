package pg

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// server is where a pool connects to. Each new connection uses what the URL and its files have then, so that passwords,
// certificates and addresses can change while the process runs.
type server struct {
	config *pgxpool.Config // as of the start
	read   func() (*pgxpool.Config, error)
	last   atomic.Pointer[pgx.ConnConfig] // the last one that could be read and whose password was not refused
}

func readServer(read func() (*pgxpool.Config, error)) (*server, error) {
	config, err := read()
	if err != nil {
		return nil, err
	}
	s := &server{config: config, read: read}
	s.last.Store(config.ConnConfig)
	return s, nil
}

// beforeConnect sets where and as whom a new connection connects. While the files cannot be read, such as in the middle
// of their replacement, it uses what they had before. While the server refuses a new password, it uses the one before:
// nobody can change the file and the role at the same instant.
func (s *server) beforeConnect(ctx context.Context, conn *pgx.ConnConfig) error {
	last := s.last.Load()
	now := last
	if read, err := s.read(); err == nil {
		now = read.ConnConfig
	}
	user, password := now.User, now.Password
	if (user != last.User || password != last.Password) && isRefused(ctx, conn, now) {
		user, password = last.User, last.Password
	} else {
		s.last.Store(now)
	}
	copyServer(conn, now)
	conn.User, conn.Password = user, password
	return nil
}

// copyServer makes a connection connect to the servers of a configuration, with its certificates, user and password.
func copyServer(conn, of *pgx.ConnConfig) {
	conn.Host, conn.Port, conn.TLSConfig, conn.Fallbacks = of.Host, of.Port, of.TLSConfig, of.Fallbacks
	conn.User, conn.Password = of.User, of.Password
}

// isRefused reports whether the server refuses the user or the password of a configuration.
func isRefused(ctx context.Context, conn, of *pgx.ConnConfig) bool {
	probe := conn.Copy()
	copyServer(probe, of)
	probed, err := pgx.ConnectConfig(ctx, probe)
	if err == nil {
		_ = probed.Close(ctx) // It was made for the answer only.
		return false
	}
	answer, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (answer.Code == stateInvalidPassword || answer.Code == stateInvalidAuthorization)
}
