// Package setup is the page of lines to copy: for agents, for the command line, and for curl.
package setup

import (
	"embed"

	"hookglass"
	"hookglass/internal/web/layout"
)

// Files is the style.
//
//go:embed setup.css
var Files embed.FS

// Model is what the page shows.
type Model struct {
	layout.Frame
	URL      string             // of the service
	MCP      string             // of its interface for agents
	Endpoint hookglass.Endpoint // the user's oldest; zero: there is none yet
	Webhook  string             // its address; empty: it has none
}

// token stands for a token: the page has none, and a real one in it could be seen by who looks on.
const token = "YOUR_TOKEN"

func (m Model) header() string { return "Authorization: Bearer " + token }

func (m Model) claude() string {
	return "claude mcp add --transport http hookglass " + m.MCP + ` --header "` + m.header() + `"`
}

// remote is for clients that speak MCP over HTTP.
func (m Model) remote() string {
	return `{
  "mcpServers": {
    "hookglass": {
      "type": "http",
      "url": "` + m.MCP + `",
      "headers": { "Authorization": "Bearer ` + token + `" }
    }
  }
}`
}

func (m Model) cursor() string {
	return `{
  "mcpServers": {
    "hookglass": {
      "url": "` + m.MCP + `",
      "headers": { "Authorization": "Bearer ` + token + `" }
    }
  }
}`
}

// vscode asks for the token, and keeps it out of the file.
func (m Model) vscode() string {
	return `{
  "inputs": [
    { "type": "promptString", "id": "hookglass", "description": "hookglass token", "password": true }
  ],
  "servers": {
    "hookglass": {
      "type": "http",
      "url": "` + m.MCP + `",
      "headers": { "Authorization": "Bearer ${input:hookglass}" }
    }
  }
}`
}

func (m Model) codex() string {
	return `[mcp_servers.hookglass]
url = "` + m.MCP + `"
bearer_token_env_var = "HOOKGLASS_TOKEN"`
}

// zed is the part of its settings.
func (m Model) zed() string {
	return `{
  "context_servers": {
    "hookglass": {
      "url": "` + m.MCP + `",
      "headers": { "Authorization": "Bearer ` + token + `" }
    }
  }
}`
}

// local is for clients that start a program: the command line passes messages on.
func (m Model) local() string {
	return `{
  "mcpServers": {
    "hookglass": {
      "command": "hookglass",
      "args": ["mcp"],
      "env": { "HOOKGLASS_SERVER": "` + m.URL + `", "HOOKGLASS_TOKEN": "` + token + `" }
    }
  }
}`
}

func (m Model) login() string { return "hookglass login --server " + m.URL }

func (m Model) listen() string {
	if m.Endpoint.ID == "" {
		return "hookglass listen 3000 --new"
	}
	return "hookglass listen 3000 -e " + string(m.Endpoint.ID)
}

func (m Model) verify() string {
	return `curl -H "` + m.header() + `" '` + m.URL + `/api/v1/endpoints'`
}

func (m Model) requests() string {
	return `curl -H "` + m.header() + `" '` + m.URL + `/api/v1/endpoints/` + string(m.Endpoint.ID) + `/requests'`
}

func (m Model) stream() string {
	return `curl -N -H "` + m.header() + `" '` + m.URL + `/api/v1/endpoints/` + string(m.Endpoint.ID) + `/stream'`
}
