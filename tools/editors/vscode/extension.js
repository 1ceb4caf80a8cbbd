// Starts 'mscclc lsp' for programs.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const settings = workspace.getConfiguration("mscclc");
  const server = { command: settings.get("path"), args: ["lsp"] };
  client = new LanguageClient("mscclc", "mscclc", server, {
    documentSelector: [{ language: "mscl" }],
    initializationOptions: { defines: settings.get("defines") },
    synchronize: {
      configurationSection: "mscclc",
      fileEvents: workspace.createFileSystemWatcher("**/*.mscl"),
    },
  });
  return client.start();
};

exports.deactivate = () => client && client.stop();
