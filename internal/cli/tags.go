package cli

import (
	"context"
	"strconv"

	"hookglass/api"
	"hookglass/internal/server"
)

// TagsCmd is `hookglass tags`.
type TagsCmd struct {
	remote

	List   TagsListCmd   `cmd:"" help:"List tags, oldest first."`
	Create TagsCreateCmd `cmd:"" help:"Create a tag."`
	Rename TagsRenameCmd `cmd:"" help:"Rename a tag; the events that have it get its new name."`
	Delete TagsDeleteCmd `cmd:"" help:"Delete a tag, and remove it from the events that have it."`
}

// TagsListCmd is `hookglass tags list`.
type TagsListCmd struct{}

func (*TagsListCmd) Run(ctx context.Context, t *server.Terminal, c *TagsCmd) error {
	from, _, err := c.connect()
	if err != nil {
		return err
	}
	all, err := from.Tags(ctx)
	if err != nil {
		return err
	}
	rows := make([][]string, len(all))
	for i, one := range all {
		rows[i] = []string{strconv.FormatInt(one.ID, 10), one.Name, orDash(one.Color)}
	}
	return c.print(t, api.List[api.Tag]{Data: all}, table([]string{"ID", "NAME", "COLOR"}, rows))
}

// TagsCreateCmd is `hookglass tags create`.
type TagsCreateCmd struct {
	Name  string  `arg:"" help:"1 to 64 characters; unique in its workspace."`
	Color *string `placeholder:"COLOR" help:"#rrggbb, #rgb or the name of a colour."`
}

func (r *TagsCreateCmd) Run(ctx context.Context, t *server.Terminal, c *TagsCmd) error {
	to, _, err := c.connect()
	if err != nil {
		return err
	}
	made, err := to.CreateTag(ctx, api.NewTag{Name: api.Some(r.Name), Color: api.Maybe(r.Color)})
	if err != nil {
		return err
	}
	return c.printTag(t, "Created", made)
}

func (c *TagsCmd) printTag(t *server.Terminal, done string, tag api.Tag) error {
	return c.say(t, api.One[api.Tag]{Data: tag}, "%s tag %d: %s\n", done, tag.ID, visible(tag.Name))
}

// TagsRenameCmd is `hookglass tags rename`.
type TagsRenameCmd struct {
	Tag  string `arg:"" help:"Its id or name."`
	Name string `arg:"" help:"The new name."`
}

func (r *TagsRenameCmd) Run(ctx context.Context, t *server.Terminal, c *TagsCmd) error {
	at, id, err := c.tag(ctx, r.Tag)
	if err != nil {
		return err
	}
	now, err := at.UpdateTag(ctx, id, api.TagChange{Name: api.Some(r.Name)})
	if err != nil {
		return err
	}
	return c.printTag(t, "Renamed", now)
}

// TagsDeleteCmd is `hookglass tags delete`.
type TagsDeleteCmd struct {
	Tag string `arg:"" help:"Its id or name."`
}

func (r *TagsDeleteCmd) Run(ctx context.Context, t *server.Terminal, c *TagsCmd) error {
	at, id, err := c.tag(ctx, r.Tag)
	if err != nil {
		return err
	}
	if err := at.DeleteTag(ctx, id); err != nil {
		return err
	}
	return c.say(t, api.One[api.DeletedNumber]{Data: api.DeletedNumber{ID: id, Deleted: true}}, "Deleted tag %d.\n", id)
}
