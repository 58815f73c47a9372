package localdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
	"time"
)

// account is the user that PostgreSQL runs as when this process is root, because PostgreSQL refuses root. Nil stands
// for the user of this process.
type account struct {
	name     string
	uid, gid uint32
}

// accountFor returns who is to run the server of a data directory: whoever owns data that is there already, else
// postgres, else nobody.
func accountFor(data string) (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // Nil is the documented account of an ordinary user.
	}
	if info, err := os.Stat(data); err == nil {
		if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 {
			return &account{name: "uid " + strconv.Itoa(int(owner.Uid)), uid: owner.Uid, gid: owner.Gid}, nil
		}
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			return newAccount(u)
		}
	}
	return nil, errors.New("PostgreSQL refuses to run as root and there is no user postgres or nobody: create one of them")
}

func newAccount(u *user.User) (*account, error) {
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("reading the uid of %s: %w", u.Username, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("reading the gid of %s: %w", u.Username, err)
	}
	return &account{name: u.Username, uid: uint32(uid), gid: uint32(gid)}, nil
}

// attributes makes a command run as the account.
func (a *account) attributes() *syscall.SysProcAttr {
	if a == nil {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.uid, Gid: a.gid}}
}

// own gives files to the account.
func (a *account) own(paths ...string) error {
	if a == nil {
		return nil
	}
	for _, path := range paths {
		if err := os.Chown(path, int(a.uid), int(a.gid)); err != nil {
			return fmt.Errorf("giving a file to %s: %w", a.name, err)
		}
	}
	return nil
}

// reach fails with advice when the account cannot enter dir, for example below /root.
func (a *account) reach(ctx context.Context, dir string) error {
	if a == nil {
		return nil
	}
	probe := command{
		step: "entering " + dir, argv: []string{"/bin/sh", "-c", `cd "$1"`, "sh", dir}, dir: "/", as: a, limit: time.Minute,
	}
	if _, err := probe.run(ctx, &progress{}); err != nil {
		return fmt.Errorf("PostgreSQL runs as %s, who cannot enter %s: choose another directory with ROOMSENSOR_HOME or"+
			" --data-dir", a.name, dir)
	}
	return nil
}
