package hookglass_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// What is kept of the log of CI is its end: that says what failed, and why.
func TestTheEndOfALogSaysWhatFailed(t *testing.T) {
	var many, server strings.Builder
	for i := range 100 {
		fmt.Fprintf(&many, "    many_test.go:7: fault %d\n", i)
		fmt.Fprintf(&server, "        time=2026-11-27T14:25:%02d.000Z level=INFO msg=line\n", i%60)
	}
	for _, c := range []struct{ name, log, want string }{
		{"nothing", `=== RUN   TestFine
    fine_test.go:5: fine
--- PASS: TestFine (0.00s)
PASS
ok  	hookglass/a	0.003s
`, ""},
		{"tests beside one another", `=== RUN   TestFine
    fine_test.go:5: fine
--- PASS: TestFine (0.00s)
=== RUN   TestBad
=== RUN   TestBad/one
=== PAUSE TestBad/one
=== RUN   TestBad/two
=== PAUSE TestBad/two
=== CONT  TestBad/one
noise
    bad_test.go:8: seen
=== CONT  TestBad/two
    bad_test.go:9: of the good
=== NAME  TestBad/one
    bad_test.go:10: two
        lines
=== NAME  TestBad
    bad_test.go:12: at the end
--- FAIL: TestBad (0.10s)
    --- PASS: TestBad/two (0.00s)
    --- FAIL: TestBad/one (0.00s)
FAIL
FAIL	hookglass/a	0.105s
=== RUN   TestOther
    bad_test.go:3: of another package
--- PASS: TestOther (0.00s)
PASS
ok  	hookglass/b	0.003s
FAIL
`, `FAIL	hookglass/a	0.105s
--- FAIL: TestBad (0.10s)
    bad_test.go:12: at the end
    --- FAIL: TestBad/one (0.00s)
    bad_test.go:8: seen
    bad_test.go:10: two
        lines
`},
		{"a long message", "=== RUN   TestServer\n    node.go:9: its log:\n" + server.String() + "    server_test.go:4: it fell\n--- FAIL: TestServer (1.00s)\nFAIL\nFAIL\thookglass/c\t1.0s\n",
			"FAIL\thookglass/c\t1.0s\n--- FAIL: TestServer (1.00s)\n    node.go:9: its log:\n" + strings.Join(strings.SplitAfter(server.String(), "\n")[:9], "") + "    server_test.go:4: it fell\n"},
		{"many messages", "=== RUN   TestMany\n" + many.String() + "--- FAIL: TestMany (1.00s)\nFAIL\nFAIL\thookglass/c\t1.0s\n",
			"FAIL\thookglass/c\t1.0s\n--- FAIL: TestMany (1.00s)\n" + strings.Join(strings.SplitAfter(many.String(), "\n")[:20], "") + "    ...\n" + strings.Join(strings.SplitAfter(many.String(), "\n")[80:], "")},
		{"a time that is over", `=== RUN   TestLong
    long_test.go:3: before
panic: test timed out after 1s
	running tests:
		TestLong (1s)

goroutine 18 [running]:
FAIL	hookglass/d	1.005s
`, `FAIL	hookglass/d	1.005s
panic: test timed out after 1s
	running tests:
		TestLong (1s)

goroutine 18 [running]:
`},
		{"what does not build", `# hookglass/e [hookglass/e.test]
e/e_test.go:3:30: undefined: undefined
FAIL	hookglass/e [build failed]
`, `# hookglass/e [hookglass/e.test]
e/e_test.go:3:30: undefined: undefined
FAIL	hookglass/e [build failed]
`},
		{"before the tests", "no database: initdb failed\nFAIL\thookglass/f\t0.002s\n", "FAIL\thookglass/f\t0.002s\nno database: initdb failed\n"},
	} {
		awk := exec.CommandContext(t.Context(), "awk", "-f", "script/failures.awk")
		awk.Stdin = strings.NewReader(c.log)
		if got, err := awk.CombinedOutput(); err != nil || string(got) != c.want {
			t.Errorf("%s: %v, it says\n%s\nand should\n%s", c.name, err, got, c.want)
		}
	}
}
