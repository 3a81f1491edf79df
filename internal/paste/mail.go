package paste

import "net"

// Mailbox is how mail reaches an email endpoint.
type Mailbox struct {
	Address string
	Host    string // where programs reach the server by SMTP; empty: nowhere
	Port    string
	SignIn  bool   // they may sign in with the address and any password; then all mail that they send is caught
	TLS     bool   // they may sign in only after STARTTLS
	Post    string // where mail is taken by HTTP
}

// The mail that the samples send.
const (
	sampleFrom    = "me@example.com"
	sampleSubject = "Hello"
	sampleText    = "Your code is 482913"
)

// Samples are how programs send an email endpoint its first mail. Programs that may sign in write to somebody else, as
// a program under test does.
func (m Mailbox) Samples() []Copy {
	posted := Copy{"curl (HTTP)", `printf 'From: ` + sampleFrom + `\r\nTo: ` + m.Address + `\r\nSubject: ` + sampleSubject + `\r\n\r\n` + sampleText + `\r\n' | curl --data-binary @- -H 'Content-Type: message/rfc822' '` + m.Post + `'`}
	if m.Host == "" {
		return []Copy{posted}
	}
	server := net.JoinHostPort(m.Host, m.Port)
	host, to := literal(m.Host), m.Address
	user, password := "", ""
	if m.SignIn {
		to, user, password = "alice@example.com", m.Address, "any"
	}
	signs := func(text string) string {
		if !m.SignIn {
			return ""
		}
		return text
	}
	tls := func(text string) string { // for clients that use TLS only when told to
		if !m.SignIn || !m.TLS {
			return ""
		}
		return text
	}
	return []Copy{
		{"swaks", "swaks --server '" + server + "'" + tls(" --tls") + signs(" --auth-user '"+user+"' --auth-password "+password) + " --to '" + to + "' --header 'Subject: " + sampleSubject + "' --body '" + sampleText + "'"},
		{"JavaScript", "import nodemailer from \"nodemailer\";\n\nconst transport = nodemailer.createTransport({ host: " + host + ", port: " + m.Port + signs(", auth: { user: "+literal(user)+", pass: "+literal(password)+" }") + " });\n" +
			"await transport.sendMail({ from: " + literal(sampleFrom) + ", to: " + literal(to) + ", subject: " + literal(sampleSubject) + ", text: " + literal(sampleText) + " });"},
		{"Python", "import smtplib\nfrom email.message import EmailMessage\n\nmail = EmailMessage()\nmail[\"From\"], mail[\"To\"], mail[\"Subject\"] = " + literal(sampleFrom) + ", " + literal(to) + ", " + literal(sampleSubject) + "\n" +
			"mail.set_content(" + literal(sampleText) + ")\nwith smtplib.SMTP(" + host + ", " + m.Port + ") as server:\n" + tls("    server.starttls()\n") + signs("    server.login("+literal(user)+", "+literal(password)+")\n") + "    server.send_message(mail)"},
		{"Go", "err := smtp.SendMail(" + literal(server) + ", " + goAuth(user, password, host) + ", " + literal(sampleFrom) + ", []string{" + literal(to) + "},\n\t[]byte(\"Subject: " + sampleSubject + "\\r\\n\\r\\n" + sampleText + "\\r\\n\"))"},
		{"Laravel", "MAIL_MAILER=smtp\nMAIL_HOST=" + m.Host + "\nMAIL_PORT=" + m.Port + "\nMAIL_USERNAME=" + orNull(user) + "\nMAIL_PASSWORD=" + orNull(password)},
		{"Rails", "config.action_mailer.delivery_method = :smtp\nconfig.action_mailer.smtp_settings = { address: " + host + ", port: " + m.Port + signs(", user_name: "+literal(user)+", password: "+literal(password)+", authentication: :plain") + " }"},
		{"Django", "EMAIL_HOST, EMAIL_PORT = " + host + ", " + m.Port + signs("\nEMAIL_HOST_USER, EMAIL_HOST_PASSWORD = "+literal(user)+", "+literal(password)) + tls("\nEMAIL_USE_TLS = True")},
		posted,
	}
}

func goAuth(user, password, host string) string {
	if user == "" {
		return "nil"
	}
	return "smtp.PlainAuth(\"\", " + literal(user) + ", " + literal(password) + ", " + host + ")"
}

func orNull(s string) string {
	if s == "" {
		return "null"
	}
	return s
}
