package schema

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Rights are how the rights of the roles of an installation differ from those that EnsureRoles gives them. An item is
// such as "roomsensor_worker: INSERT on readings".
type Rights struct {
	Prefix         string // of the roles; empty if no such role has a right here
	Missing, Added []string
}

// rightsQuery lists the rights that roles were given on the schema public, and on its relations, columns and functions,
// and the rights that they have on the database: by default, everybody has those.
const rightsQuery = `
SELECT r.rolname, r.rolname || ': ' || p.name || ' on the database'
FROM pg_roles r, (VALUES ('CONNECT'), ('TEMPORARY')) p (name)
WHERE has_database_privilege(r.oid, current_database(), p.name)
UNION ALL
SELECT r.rolname, r.rolname || ': ' || a.privilege_type || ' on ' || o.name
FROM (
    SELECT 'the schema public', nspacl FROM pg_namespace WHERE nspname = 'public'
    UNION ALL SELECT relname, relacl FROM pg_class WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT c.relname || '.' || a.attname, a.attacl FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relnamespace = 'public'::regnamespace
    UNION ALL SELECT proname, proacl FROM pg_proc WHERE pronamespace = 'public'::regnamespace
) o (name, acl), aclexplode(o.acl) a JOIN pg_roles r ON r.oid = a.grantee
ORDER BY 2`

// errRollBack ends a transaction that only finds something out.
var errRollBack = errors.New("rolled back")

// CompareRights compares the rights of the roles with those that EnsureRoles gives them: it grants them in a
// transaction that it rolls back. It needs the rights of the owner of the tables.
func CompareRights(ctx context.Context, databaseURL string) (found Rights, err error) {
	config, err := connConfig(databaseURL)
	if err != nil {
		return found, err
	}
	config.RuntimeParams["lock_timeout"] = lockTimeout
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return found, fmt.Errorf("connecting to the database: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		before, err := rights(ctx, tx)
		if err != nil {
			return err
		}
		if found.Prefix = prefixOf(before); found.Prefix == "" {
			return errRollBack
		}
		roles := Roles{Prefix: found.Prefix}
		if _, err := tx.Exec(ctx, roles.grants()); err != nil {
			return fmt.Errorf("granting the rights of the roles: %w", err)
		}
		after, err := rights(ctx, tx)
		if err != nil {
			return err
		}
		for _, role := range AllRoles {
			had, needs := before[roles.Name(role)], after[roles.Name(role)]
			found.Missing = append(found.Missing, without(needs, had)...)
			found.Added = append(found.Added, without(had, needs)...)
		}
		return errRollBack
	})
	if errors.Is(err, errRollBack) {
		err = nil
	}
	return found, err
}

// rights returns the rights of each role.
func rights(ctx context.Context, tx pgx.Tx) (map[string][]string, error) {
	rows, _ := tx.Query(ctx, rightsQuery) // ForEachRow returns the error.
	var role, right string
	found := map[string][]string{}
	_, err := pgx.ForEachRow(rows, []any{&role, &right}, func() error {
		found[role] = append(found[role], right)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the rights of the roles: %w", err)
	}
	return found, nil
}

// prefixOf returns the prefix of the roles that have the most rights, or nothing: other installations on the server
// have no more rights here than everybody.
func prefixOf(rights map[string][]string) (prefix string) {
	const everybody = 2 // Rights on the database.
	most := everybody
	for name, list := range rights {
		for _, role := range AllRoles {
			if found, ok := strings.CutSuffix(name, "_"+string(role)); ok && len(list) > most {
				prefix, most = found, len(list)
			}
		}
	}
	return prefix
}

// without returns the items of a list that another one lacks.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(item string) bool { return slices.Contains(other, item) })
}
