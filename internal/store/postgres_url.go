package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// CheckURL reports what is wrong with a postgres:// URL. The error never contains the password, or what may be part of
// it.
func CheckURL(url string) error {
	_, err := readURL(url)
	return err
}

// errURL is the error for text that is not a URL. It quotes nothing: any part could be the password.
var errURL = errors.New("it is not a URL: in a user's name and in a password @ is written %40, : %3A, / %2F, ? %3F, # %23, % %25 and a space %20, and a port is a number up to 65535")

// parseURL parses a postgres:// URL for all sessions.
func parseURL(url string) (*pgxpool.Config, error) {
	cfg, err := readURL(url)
	if err != nil {
		return nil, fmt.Errorf("store: the database URL cannot be read: %w", err)
	}
	return cfg, nil
}

// statementCache is how many statements a session keeps prepared, the driver's default.
const statementCache = 512

func readURL(url string) (*pgxpool.Config, error) {
	if strings.ContainsFunc(url, unicode.IsControl) {
		return nil, errors.New("it holds a line break or another control character; a value that was read from a file may end with one")
	}
	cfg, err := pgxpool.ParseConfig(url)
	if failed, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		failed.ConnString = "" // the error would start with it
		why := strings.TrimPrefix(failed.Error(), "cannot parse ``: ")
		for _, torn := range []string{"failed to parse", "invalid port", "could not match"} {
			if strings.HasPrefix(why, torn) {
				return nil, errURL
			}
		}
		return nil, errors.New(why)
	}
	if err != nil {
		return nil, errURL
	}
	for _, host := range hostsOf(&cfg.ConnConfig.Config) {
		if strings.LastIndexByte(host.Host, '@') > 0 { // at the start it denotes an abstract socket
			return nil, errURL
		}
	}
	conn := cfg.ConnConfig
	// Other modes are for poolers in transaction mode, which this program does not support. Some of them send values as
	// text and leave their types to the server's guess.
	conn.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	if conn.StatementCacheCapacity <= 0 {
		conn.StatementCacheCapacity = statementCache
	}
	// Of several servers one takes writes; the others are standbys, or will be.
	several := slices.ContainsFunc(conn.Fallbacks, func(at *pgconn.FallbackConfig) bool { return at.Host != conn.Host || at.Port != conn.Port })
	if several && conn.ValidateConnect == nil {
		conn.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return cfg, nil
}

// hostsOf returns the hosts of a configuration. Each occurs twice if TLS is optional.
func hostsOf(cfg *pgconn.Config) []*pgconn.FallbackConfig {
	return append([]*pgconn.FallbackConfig{{Host: cfg.Host, Port: cfg.Port}}, cfg.Fallbacks...)
}

// PostgresHosts returns the network addresses, host:port, of a URL's database, including what the environment adds. For
// a socket, which is on this machine, it is localhost with the port in the socket's name. It returns none without a
// URL, or for one that cannot be parsed.
func PostgresHosts(url string) []string {
	if url == "" {
		return nil
	}
	cfg, err := pgconn.ParseConfig(url)
	if err != nil {
		return nil
	}
	var hosts []string
	for _, at := range hostsOf(cfg) {
		network, address := pgconn.NetworkAddress(at.Host, at.Port)
		if network == "unix" {
			_, address = pgconn.NetworkAddress("localhost", at.Port)
		}
		if !slices.Contains(hosts, address) {
			hosts = append(hosts, address)
		}
	}
	return hosts
}
