package schema

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

//go:embed roles/grants.sql
var grants string

// namesInGrants is the prefix of the roles in grants.
const namesInGrants = "roomsensor"

// Role is a database role with which a kind of process logs in.
type Role string

// The roles. Their names in the database have a prefix, such as roomsensor_api.
const (
	RoleAPI       Role = "api"
	RoleWorker    Role = "worker"
	RoleReceiver  Role = "receiver"
	RoleDashboard Role = "dashboard"
	RoleNotify    Role = "notify"
)

// AllRoles lists the roles of the processes.
var AllRoles = []Role{RoleAPI, RoleWorker, RoleReceiver, RoleDashboard, RoleNotify}

// roleSettings are the defaults of a role's sessions. A process sets the same for its connections, but PgBouncer cannot
// pass them on in transaction mode.
var roleSettings = map[Role][]string{
	RoleAPI: clientSettings, RoleDashboard: clientSettings, RoleWorker: ingestSettings, RoleReceiver: ingestSettings,
	RoleNotify: ingestSettings,
}

var (
	clientSettings = []string{
		"statement_timeout=5s", "lock_timeout=2s", "idle_in_transaction_session_timeout=10s", "synchronous_commit=on",
		"jit=off",
	}
	ingestSettings = []string{
		"statement_timeout=30s", "lock_timeout=5s", "idle_in_transaction_session_timeout=60s", "synchronous_commit=on",
		"jit=off",
	}
)

const stateInsufficientPrivilege = "42501"

// Roles are the database roles of an installation.
type Roles struct {
	Prefix string // of the names: roomsensor for roomsensor_api and the others
	// Passwords contains the passwords to set. The others stay as they are; a new role has none.
	Passwords map[Role]string
}

// Name returns the name of a role in the database.
func (r Roles) Name(role Role) string { return r.Prefix + "_" + string(role) }

// URL returns the URL of a database with the name and the password of a role.
func (r Roles) URL(databaseURL string, role Role) (string, error) {
	u, err := url.Parse(databaseURL)
	if err != nil {
		return "", fmt.Errorf("reading the database URL: %w", err)
	}
	u.User = url.UserPassword(r.Name(role), r.Passwords[role])
	return u.String(), nil
}

// EnsureRoles creates the missing roles and gives each exactly the rights of its processes on this database. It needs
// CREATEROLE only to create or change a role; the owner of the tables may grant the rights.
func EnsureRoles(ctx context.Context, databaseURL string, r Roles) error {
	config, err := connConfig(databaseURL)
	if err != nil {
		return err
	}
	config.RuntimeParams["lock_timeout"] = lockTimeout
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("connecting to the database: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	return retryLocked(ctx, func() error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			// Concurrent calls would change the same rows of the catalog.
			if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(lock_key('roles'))"); err != nil {
				return fmt.Errorf("locking the roles: %w", err)
			}
			for _, role := range AllRoles {
				if err := r.ensure(ctx, tx, role); err != nil {
					return err
				}
			}
			_, err := tx.Exec(ctx, r.grants())
			if err != nil {
				return fmt.Errorf("granting the rights of the roles: %w", err)
			}
			return nil
		})
	})
}

// grants returns the text of grants with the names of the roles.
func (r Roles) grants() string {
	var names []string
	for _, role := range AllRoles {
		names = append(names, Roles{Prefix: namesInGrants}.Name(role), pgx.Identifier{r.Name(role)}.Sanitize())
	}
	return strings.NewReplacer(names...).Replace(grants)
}

// ensure creates a role, and sets its password and its settings where they differ.
func (r Roles) ensure(ctx context.Context, tx pgx.Tx, role Role) error {
	var settings []string
	err := tx.QueryRow(ctx, "SELECT coalesce(rolconfig, '{}') FROM pg_roles WHERE rolname = $1", r.Name(role)).
		Scan(&settings)
	missing := errors.Is(err, pgx.ErrNoRows)
	if err != nil && !missing {
		return fmt.Errorf("reading the role %s: %w", r.Name(role), err)
	}
	name := pgx.Identifier{r.Name(role)}.Sanitize()
	var changes []string
	if missing {
		changes = append(changes, "CREATE ROLE "+name+" LOGIN")
	}
	for _, setting := range roleSettings[role] {
		if parameter, value, _ := strings.Cut(setting, "="); !slices.Contains(settings, setting) {
			changes = append(changes, "ALTER ROLE "+name+" SET "+parameter+" = '"+value+"'")
		}
	}
	if password := r.Passwords[role]; password != "" {
		verifier, err := scramVerifier(password)
		if err != nil {
			return err
		}
		changes = append(changes, "ALTER ROLE "+name+" PASSWORD '"+verifier+"'")
	}
	for _, change := range changes {
		if _, err := tx.Exec(ctx, change); err != nil {
			return r.refused(err, tx.Conn().Config().User, changes)
		}
	}
	return nil
}

// refused returns the error of a change. Without the right to change roles, it names the statements for someone who has
// it. PostgreSQL 16 and later need the ADMIN OPTION, which an owner lacks who created the roles before an upgrade.
func (r Roles) refused(err error, owner string, changes []string) error {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || pgErr.Code != stateInsufficientPrivilege {
		return fmt.Errorf("creating the roles: %w", err)
	}
	return fmt.Errorf("creating the roles: %w; let an administrator of the server run: %s; "+
		"without the password, migrate up then only grants rights; after an upgrade from PostgreSQL 15, "+
		"an administrator can let the owner change the roles: %s",
		err, strings.Join(changes, "; "), r.administration(owner))
}

// administration returns the statement that lets an owner change the roles.
func (r Roles) administration(owner string) string {
	var names []string
	for _, role := range AllRoles {
		names = append(names, pgx.Identifier{r.Name(role)}.Sanitize())
	}
	return "GRANT " + strings.Join(names, ", ") + " TO " + pgx.Identifier{owner}.Sanitize() + " WITH ADMIN OPTION"
}

// scramVerifier returns what PostgreSQL stores of a password (RFC 5803), so that the password itself appears neither in
// a statement nor in the log of the server.
func scramVerifier(password string) (string, error) {
	const iterations = 4096 // The default of PostgreSQL.
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // It never returns an error.
	salted, err := pbkdf2.Key(sha256.New, password, salt, iterations, sha256.Size)
	if err != nil {
		return "", fmt.Errorf("hashing a password: %w", err)
	}
	sign := func(text string) []byte {
		mac := hmac.New(sha256.New, salted)
		_, _ = mac.Write([]byte(text)) // Writing to a hash never fails.
		return mac.Sum(nil)
	}
	stored := sha256.Sum256(sign("Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s",
		iterations, encode(salt), encode(stored[:]), encode(sign("Server Key"))), nil
}
