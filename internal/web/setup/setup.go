// Package setup renders the page of commands and configuration to copy: for agents, the command line and curl.
package setup

import (
	"embed"

	"hookglass"
	"hookglass/internal/web/layout"
)

// Files holds the style.
//
//go:embed setup.css
var Files embed.FS

// Model is the content of the page.
type Model struct {
	layout.Frame
	URL      string             // of the service
	MCP      string             // of its MCP server
	Endpoint hookglass.Endpoint // the user's oldest; zero: none yet
	Webhook  string             // its URL; empty: it has none
}

// token is a placeholder. The page has no real token, and one could be seen by bystanders.
const token = "YOUR_TOKEN"

func (m Model) header() string { return "Authorization: Bearer " + token }

func (m Model) claude() string {
	return "claude mcp add --transport http hookglass " + m.MCP + ` --header "` + m.header() + `"`
}

// remote configures clients that speak MCP over HTTP.
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

// vscode makes the editor ask for the token, which keeps it out of the file.
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

// zed is a part of the editor's settings.
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

// local configures clients that start a program: the command line passes the messages on.
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
