// Starts `whence lsp` for rules; everything else is the language server's.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const command = workspace.getConfiguration("whence").get("command");
  const server = { command, args: ["lsp"] };
  client = new LanguageClient("whence", "Whence", server, { documentSelector: [{ language: "whence" }] });
  return client.start();
};

exports.deactivate = () => client?.stop();
