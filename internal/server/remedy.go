package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"hookglass"
	"hookglass/internal/neterr"
	"hookglass/internal/store"
)

// remedy is an error with advice.
type remedy struct {
	error
	what string
}

func (r remedy) Error() string { return r.error.Error() + ": " + r.what }

func (r remedy) Unwrap() error { return r.error }

// fullDisk is an error of a disk that is full or fails. Its advice stands first: what a database says in the middle of
// a change of its schema is long, and tells an operator little.
type fullDisk struct{ error }

func (f fullDisk) Error() string {
	return "the disk is full, or fails: make room, or give it more, and try again (" + f.error.Error() + ")"
}

func (f fullDisk) Unwrap() error { return f.error }

// bindFailure says by which flag an address was given that could not be listened on, and what there is to do.
func bindFailure(flag string, err error) error {
	err = fmt.Errorf("--%s: %w", flag, err)
	switch {
	case neterr.InUse(err):
		return remedy{err, "another program has the address, perhaps another hookglass; stop that one, or name another address by --" + flag}
	case neterr.NotOurs(err):
		return remedy{err, "this machine has no such address; 0.0.0.0 means all that it has"}
	case errors.Is(err, fs.ErrPermission):
		return remedy{err, "ports below 1024 need root, or the right CAP_NET_BIND_SERVICE, which the service of a package has"}
	}
	return err
}

// remedied adds advice to an error about the parts of an installation, if there is any and it was not added yet.
func remedied(err error) error {
	var what string
	var schema *store.SchemaError
	var right *store.MissingRight
	var asleep *store.NotWritable
	switch {
	case errors.As(err, new(remedy)), errors.As(err, new(fullDisk)):
		return err
	case errors.Is(err, syscall.EROFS):
		what = "mount the file system for writing"
	case errors.Is(err, fs.ErrPermission), store.NotLet(err):
		what = "run this as the user whose files these are (with a package, by hookglass-service), or give them to this one"
	case errors.Is(err, store.ErrForeign):
		what = "give the service a database of its own"
	case errors.Is(err, store.ErrHidden):
		what = "name the schema that has them (ALTER ROLE … SET search_path = …), or for an installation beside them that of its own alone"
	case errors.As(err, &schema) && schema.Newer():
		what = "take that program, or restore a backup of before the upgrade"
	case errors.As(err, &schema) && schema.Have == 0:
		what = "start the service, or run hookglass migrate"
	case errors.As(err, &schema):
		what = "run hookglass migrate, after which an older program that still serves it cannot be started again"
	case errors.As(err, &right) && right.Grant == "":
		what = "let that role own them: bring the dump back as it (pg_restore --no-owner --role=…), or have a superuser run ALTER TABLE … OWNER TO for each"
	case errors.As(err, &right):
		what = "have its owner or a superuser run: " + right.Grant
	case errors.As(err, &asleep) && asleep.Standby:
		what = "name the primary in --database-url, or all servers (postgres://…@a,b/…), or promote this one"
	case errors.As(err, &asleep):
		what = "name a role that may write, or have a superuser run: ALTER ROLE … RESET default_transaction_read_only, or ALTER DATABASE …"
	case errors.As(err, new(*store.EncodingError)):
		what = "make one with the encoding UTF8 (createdb -T template0 -E UTF8 …); hookglass backup takes what is in this one there"
	case errors.As(err, new(*tls.CertificateVerificationError)), errors.As(err, new(x509.UnknownAuthorityError)), errors.As(err, new(x509.HostnameError)):
		what = "name the authority's certificate by sslrootcert=FILE in --database-url, and the server as its certificate does"
	case store.Crowded(err):
		what = "let there be more: max_connections, or the CONNECTION LIMIT of the role or the database, is to be the sum of what all nodes take (docs/operations.md, Sizing)"
	case store.Damaged(err):
		what = "stop the service, keep a copy of the data directory, and bring the last backup back (hookglass restore --force)"
	case store.NoRoom(err):
		// Of an error with a code, its own sentence would be what people are told.
		if coded, ok := errors.AsType[*hookglass.Error](err); ok && coded.Err != nil {
			err = coded.Err
		}
		return fullDisk{err}
	default:
		return err
	}
	return remedy{err, what}
}
