package cli_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
)

// relaying is the address of a mail server that takes mail for all but who is called nobody.
func relaying(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	t.Cleanup(func() {
		ln.Close()
		conns.Wait()
	})
	conns.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer conn.Close()
				fmt.Fprint(conn, "220 relay\r\n")
				data := false
				for in := bufio.NewScanner(conn); in.Scan(); {
					switch line := in.Text(); {
					case data && line != ".":
						continue
					case strings.Contains(line, "nobody"):
						fmt.Fprint(conn, "550 5.1.1 who?\r\n")
					case line == "DATA":
						fmt.Fprint(conn, "354 go on\r\n")
						data = true
					default:
						fmt.Fprint(conn, "250 2.0.0 queued\r\n")
						data = false
					}
				}
			})
		}
	})
	return ln.Addr().String()
}

func TestAMailIsReleased(t *testing.T) {
	t.Setenv("HOOKGLASS_SMTP_RELAY", relaying(t))
	t.Setenv("HOOKGLASS_RELEASE_TO", "dev@example.com,@team.example")
	_, hook := listening(t)
	made := object(t, "", "endpoints", "create", "Inbox", "--kind", "email")
	inbox := member(t, made, "data", "id").(string)
	base, _, _ := strings.Cut(hook, "/hooks/")
	send(t, base+"/mail/"+inbox, "message/rfc822", "Subject: hello\r\n\r\nbody\r\n")
	r := run(t, "", "requests", "release", "latest", "-e", inbox, "--to", "dev@example.com", "--to", "lea@team.example")
	if r.code != 0 || !strings.Contains(r.out, "to dev@example.com, lea@team.example") || !strings.Contains(r.out, "250 2.0.0 queued") {
		t.Errorf("%+v", r)
	}
	sent := object(t, "", "requests", "release", "latest", "-e", inbox, "--to", "dev@example.com,lea@team.example")
	if member(t, sent, "data", "status") != "sent" || len(member(t, sent, "data", "to").([]any)) != 2 {
		t.Errorf("%v", sent)
	}
	fails(t, 1, "The relay said: 550 5.1.1 who?", "requests", "release", "latest", "-e", inbox, "--to", "nobody@team.example")
	fails(t, 1, "eve@evil.example is not among the addresses", "requests", "release", "latest", "-e", inbox, "--to", "eve@evil.example")
	fails(t, 2, "--to", "requests", "release", "latest", "-e", inbox)
	all := member(t, object(t, "", "requests", "releases", "latest", "-e", inbox), "data").([]any)
	if len(all) != 3 || member(t, all[0], "status") != "failed" || member(t, all[2], "status") != "sent" {
		t.Errorf("%v", all)
	}
	if r := run(t, "", "requests", "releases", "latest", "-e", inbox); r.code != 0 || strings.Count(r.out, "dev@example.com, lea@team.example") != 2 || !strings.Contains(r.out, "550 5.1.1 who?") {
		t.Errorf("%+v", r)
	}
}
