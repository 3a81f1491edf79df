# Of the log of `go test -v`: what each test that failed has said itself (file.go:12: ...), and what ended a package or
# its build otherwise. It is short, however long the log is. The packages of a log come one after another.
BEGIN { most = 200; first = 20; last = 20; long = 10 }

function out(line) {
	if (++printed <= most)
		print line
}

function note(name, line) { said[name, ++n[name]] = line }

# tell prints what was noted of a test, or of its package (""): the first and the last of it.
function tell(name, i) {
	for (i = 1; i <= n[name]; i++)
		if (i <= first || i > n[name] - last)
			out(said[name, i])
		else if (i == first + 1)
			out("    ...")
}

# What does not build is told between the packages.
/^# / { builds = 1 }
builds && /^(# |[^ \t]+\.go:[0-9]+:|\t)/ { out($0); next }
{ builds = 0 }

/^=== (RUN|PAUSE|CONT|NAME) / { test = $3; own = 0; next }
/^ *--- (PASS|FAIL|SKIP|BENCH): / {
	if ($2 == "FAIL:") {
		failed[++fails] = $3
		how[fails] = $0
	}
	test = ""
	next
}

# A package has ended.
/^(ok|FAIL|\?)[ \t]+[a-z]/ {
	if ($1 == "FAIL") {
		out($0)
		for (i = 1; i <= fails; i++) {
			out(how[i])
			tell(failed[i])
		}
		tell("")
	}
	split("", n)
	fails = ending = 0
	test = ""
	next
}

# A panic, a race, a time that is over: how it begins says where.
/^(panic: |fatal error: |unexpected fault |SIG[A-Z]+: |WARNING: DATA RACE)/ { ending = last }
ending > 0 { ending--; note("", $0); next }

test == "" {
	if ($0 !~ /^(PASS|FAIL|exit status .*)?$/)
		note("", $0)
	next
}
/^ +[A-Za-z0-9_]+\.go:[0-9]+: / { own = 1 }
own && !/^    / { own = 0 }
own && own++ <= long { note(test, $0) } # of a message that is long, as the log of a server is, the beginning

END {
	if (printed > most)
		print "... and " printed - most " lines more: they are in the log above"
}
