package cable

// What reads the messages of a client.
var (
	ParseCommand    = parseCommand
	ParseIdentifier = parseIdentifier
	ParseAction     = parseAction
)
