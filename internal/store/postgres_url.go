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

// CheckURL says what is wrong with a postgres:// address by itself. Its password, and what may be a part of it, is not
// in the error.
func CheckURL(url string) error {
	_, err := readURL(url)
	return err
}

// errURL is said of what is no URL, whose parts are not known: any of them may be the password.
var errURL = errors.New("it is not a URL: in a user's name and in a password @ is written %40, : %3A, / %2F, ? %3F, # %23, % %25 and a space %20, and a port is a number up to 65535")

// parseURL reads a postgres:// address as all sessions are made by it.
func parseURL(url string) (*pgxpool.Config, error) {
	cfg, err := readURL(url)
	if err != nil {
		return nil, fmt.Errorf("store: the database URL can not be read: %w", err)
	}
	return cfg, nil
}

// statementCache is how many statements a session keeps prepared, as the driver has it.
const statementCache = 512

func readURL(url string) (*pgxpool.Config, error) {
	if strings.ContainsFunc(url, unicode.IsControl) {
		return nil, errors.New("there is a line break or another control character in it; what a file gives a variable has one at its end")
	}
	cfg, err := pgxpool.ParseConfig(url)
	if failed, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		failed.ConnString = "" // which would stand before what is wrong
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
		if strings.LastIndexByte(host.Host, '@') > 0 { // at the beginning it is a socket without a file
			return nil, errURL
		}
	}
	conn := cfg.ConnConfig
	// Other modes are for poolers of transactions, on which this program does not run. Some send each value as a text,
	// and leave it to the server to guess what that is.
	conn.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	if conn.StatementCacheCapacity <= 0 {
		conn.StatementCacheCapacity = statementCache
	}
	// Of several servers one takes writes; the others are its standbys, or become them.
	several := slices.ContainsFunc(conn.Fallbacks, func(at *pgconn.FallbackConfig) bool { return at.Host != conn.Host || at.Port != conn.Port })
	if several && conn.ValidateConnect == nil {
		conn.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	return cfg, nil
}

// hostsOf are the hosts of a configuration, each once more without TLS where that is not asked for.
func hostsOf(cfg *pgconn.Config) []*pgconn.FallbackConfig {
	return append([]*pgconn.FallbackConfig{{Host: cfg.Host, Port: cfg.Port}}, cfg.Fallbacks...)
}

// PostgresHosts is where the database of a URL is to be found over the network: host:port of each of its hosts, read as
// it is when they are connected to, with what the environment adds. One that is connected to by its socket is on this
// machine, and listens on the port in the socket's name if on any. It is none without a URL, and for one that cannot
// be read.
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
