package cli

// This file is how help looks: what a verb does, how it is called, its own flags, and where the others are listed.

const helpTemplate = `{{with (or .Long .Short)}}{{. | trimTrailingWhitespaces}}
{{end}}{{if or .Runnable .HasSubCommands}}
{{.UsageString}}{{end}}`

const usageTemplate = `Usage:
  {{if .HasAvailableSubCommands}}{{.CommandPath}} VERB [flags]{{else}}{{.UseLine}} [flags]{{end}}
{{- if .HasExample}}

Examples:
{{.Example}}
{{- end}}
{{- if .HasAvailableSubCommands}}

Verbs:
{{- range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}

More help:
{{- range .Commands}}{{if .IsAdditionalHelpTopicCommand}}
  {{.Root.DisplayName}} help {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}
{{- else if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsagesWrapped 80 | trimTrailingWhitespaces}}

"{{.Root.DisplayName}} help options" lists the flags that every verb has.
{{- end}}
`
