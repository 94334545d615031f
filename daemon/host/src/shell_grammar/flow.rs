//! Statements in the order in which the shell runs them, and the known folders and variables after each.

use toold_engine::need::Word;
use toold_proto::cut;
use tree_sitter::Node;

use super::arg::{Arg, WordPart};
use super::programs::{self, CommandOutput};
use super::state::{ShellState, is_number};
use super::{
    LineItem, MAX_DEPTH, MAX_NEEDS, MAX_STATEMENTS, ShellWalk, SimpleCommand, Unreadable, Walked, all, check,
    children_of_field, named, variables, with_fields,
};

impl<'t> ShellWalk<'_, '_, '_> {
    pub(super) fn statement(&mut self, node: Node<'t>) -> Walked {
        self.depth += 1;
        self.statements += 1;
        if self.depth > MAX_DEPTH
            || self.found.len() > MAX_NEEDS
            || self.statements > MAX_STATEMENTS
            || self.clock.is_over()
        {
            return Err(Unreadable);
        }
        self.failed = None;
        self.output = CommandOutput::Unknown;
        self.statement_of_kind(node)?;
        // The output of several commands is unknown.
        if !matches!(node.kind(), "command" | "redirected_statement" | "pipeline" | "declaration_command") {
            self.output = CommandOutput::Unknown;
        }
        self.depth -= 1;
        Ok(())
    }

    fn statement_of_kind(&mut self, node: Node<'t>) -> Walked {
        match node.kind() {
            "compound_statement" if self.text(node).starts_with("((") => self.arithmetic(node),
            "compound_statement" if !check::blank_follows(self.source, node.start_byte() + 1) => Err(Unreadable),
            "program" | "compound_statement" | "do_group" => self.sequence(&all(node)),
            "negated_command" => self.negated(node, &[]),
            "subshell" => self.aside(|walk| walk.sequence(&all(node))),
            "pipeline" => self.pipeline(node, &[]),
            "list" => self.list(node, &[]),
            "if_statement" => self.condition(node),
            "while_statement" => self.while_loop(node),
            "comment" if self.substitutions > 0 || !check::comment_is_one(node, self.source) => Err(Unreadable),
            "comment" => Ok(()),
            "command" => self.command(node, &[]),
            "redirected_statement" => self.redirected(node),
            "declaration_command" | "unset_command" => self.declaration(node),
            "test_command" => self.test(node),
            "variable_assignment" => self.assignment(node, true),
            "variable_assignments" => named(node).into_iter().try_for_each(|child| self.assignment(child, true)),
            "for_statement" => self.for_loop(node),
            "case_statement" => self.case(node),
            "c_style_for_statement" => self.counting_loop(node),
            "function_definition" => self.function(node, &[]),
            _ => Err(Unreadable),
        }
    }

    /// The commands that it runs are known, but not when and with what arguments. `redirects` follow those that the grammar
    /// takes for a part of the definition.
    pub(super) fn function(&mut self, node: Node<'t>, redirects: &[Node<'t>]) -> Walked {
        self.judged.insert(node.id());
        let body = node.child_by_field_name("body").ok_or(Unreadable)?;
        let name = node.child_by_field_name("name").map(|name| self.text(name)).unwrap_or_default();
        let redirects: Vec<Node> = children_of_field(node, "redirect").into_iter().chain(redirects.to_vec()).collect();
        let is_own = redirects.is_empty() && programs::is_no_command(name) && !self.calls(body, name);
        self.unsure(node, "it is unknown when it runs, and with which variables")?;
        let before = self.state.clone();
        match is_own && stays_in_folder(self.source) {
            true => self.state.lose_all_but_folder(),
            false => self.state.lose(),
        }
        // Rules are about each of these commands, and not about words between them.
        if let Some(LineItem::Command(function)) = self.found.last_mut() {
            let head = cut::between(self.source, node.start_byte()..body.start_byte());
            function.target = head.trim().to_owned();
            if is_own {
                // Nothing else has its name, and what it runs is judged for any words.
                function.unsure = None;
                function.reads_only = true;
            }
        }
        // Each call opens the files behind the body.
        let input = std::mem::take(&mut self.input);
        self.with_redirects(body, &redirects)?;
        self.input = input;
        self.failed = None;
        if is_own {
            let leaves_shell = self.leaves_shell(body);
            self.state = before;
            self.state.define(name, leaves_shell);
        }
        Ok(())
    }

    /// Whether a command in it has this name, or one that is not known.
    fn calls(&self, node: Node<'t>, name: &str) -> bool {
        let own = node.child_by_field_name("name").filter(|_| node.kind() == "command").map(|name| self.text(name));
        own == Some(name) || named(node).into_iter().any(|child| self.calls(child, name))
    }

    /// Whether nothing in it changes the folder or the variables of the shell.
    fn leaves_shell(&self, node: Node<'t>) -> bool {
        let changes = [
            "variable_assignment",
            "variable_assignments",
            "declaration_command",
            "unset_command",
            "function_definition",
            "for_statement",
            "c_style_for_statement",
        ];
        let is_command = |name: &str| {
            let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
            plain && !programs::changes_shell(name) && self.state.function(name).is_none_or(|leaves_shell| leaves_shell)
        };
        let name = node.child_by_field_name("name").filter(|_| node.kind() == "command").map(|name| self.text(name));
        !changes.contains(&node.kind())
            && !self.text(node).starts_with("((")
            && name.is_none_or(is_command)
            && named(node).into_iter().all(|child| self.leaves_shell(child))
    }

    /// `((expression))`, which is read like `$((expression))`.
    fn arithmetic(&mut self, node: Node<'t>) -> Walked {
        if self.only_counts(node) {
            return Ok(());
        }
        let raw = self.text(node);
        let inside = raw.strip_prefix("((").and_then(|rest| rest.strip_suffix("))"));
        if let Some(name) = inside.and_then(|inside| self.assigns_number(inside)) {
            self.found.push(LineItem::Command(SimpleCommand::arithmetic(raw)));
            self.state.set(name, Some(vec![WordPart::Number]));
            return Ok(());
        }
        if inside.is_some_and(|inside| self.is_plain_expression(inside)) {
            self.found.push(LineItem::Command(SimpleCommand::arithmetic(raw)));
            return Ok(());
        }
        self.inner_expansions(node)?;
        self.evaluates(node);
        Ok(())
    }

    /// The values of variables are evaluated, and may contain commands.
    fn evaluates(&mut self, node: Node<'t>) {
        let why = "arithmetic evaluates the values of variables";
        let shown = self.lifted.shown(node.byte_range());
        let command = SimpleCommand { may_run_any: true, ..SimpleCommand::not_understood(&shown, why) };
        self.found.push(LineItem::Command(command));
        self.state.lose();
    }

    /// `for ((i=0; i<n; i++))`
    fn counting_loop(&mut self, node: Node<'t>) -> Walked {
        let body = node.child_by_field_name("body").ok_or(Unreadable)?;
        if let Some(counters) = self.counters(node) {
            let (start, beside) = (self.found.len(), self.unordered.len());
            self.repeat(|walk| walk.statement(body))?;
            // The body may have set them.
            if counters.iter().all(|name| self.counts_in(name)) {
                return Ok(());
            }
            self.found.truncate(start);
            self.unordered.truncate(beside);
        }
        let head = all(node).into_iter().filter(|child| child.end_byte() <= body.start_byte());
        head.filter(Node::is_named).try_for_each(|part| self.inner_expansions(part))?;
        self.evaluates(node);
        // Rules are about each command of the body, and not about words between them.
        if let Some(LineItem::Command(command)) = self.found.last_mut() {
            let head = cut::between(self.source, node.start_byte()..body.start_byte());
            command.target = head.trim_end_matches([';', ' ', '\n']).to_owned();
        }
        self.statement(body)?;
        self.failed = None;
        Ok(())
    }

    /// `((i++))`, `((n += 2))`: with one variable that is a number.
    fn only_counts(&mut self, node: Node<'t>) -> bool {
        let inside = self.text(node).strip_prefix("((").and_then(|rest| rest.strip_suffix("))"));
        let Some(inside) = inside.map(str::trim) else { return false };
        let name_end = inside.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inside.len());
        let (name, rest) = inside.split_at(name_end);
        let rest = rest.trim();
        let amount = rest.strip_prefix("+=").or_else(|| rest.strip_prefix("-=")).map(str::trim);
        let is_amount = amount.is_some_and(|amount| !amount.is_empty() && amount.bytes().all(|b| b.is_ascii_digit()));
        let holds_number =
            matches!(self.state.variable(name), Some(Some(value)) if is_number(value)) || self.counts_in(name);
        let counts = check::is_name(name) && holds_number && (is_amount || matches!(rest, "++" | "--"));
        if counts {
            if !self.state.is_set(name) {
                // Like an assignment.
                let word = Word { text: format!("{name}=$(({inside}))"), literal: false };
                let variable = SimpleCommand::variable(name, self.text(node), true);
                self.found.push(LineItem::Command(SimpleCommand { words: Some(vec![word]), ..variable }));
            }
            self.state.set(name, Some(vec![WordPart::Number]));
        }
        counts
    }

    /// Whether the operands of `let` are assignments of numbers to variables of the shell's own, with which nothing but numbers
    /// is computed.
    pub(super) fn only_computes(&self, operands: &[Arg]) -> bool {
        let is_one = |word: &Arg| word.literal().is_some_and(|text| self.assigns_number(text).is_some());
        !operands.is_empty() && operands.iter().all(is_one)
    }

    /// The name of the variable that an arithmetic expression such as `n++`, `n += 2` or `n = a * 3` sets to a number.
    pub(super) fn assigns_number<'x>(&self, expression: &'x str) -> Option<&'x str> {
        let expression = expression.trim();
        let end = expression.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(expression.len());
        let (name, rest) = expression.split_at(end);
        let rest = rest.trim();
        let value = ["+=", "-=", "*="].iter().find_map(|operator| rest.strip_prefix(operator));
        let set = rest.strip_prefix('=').filter(|value| !value.starts_with('='));
        let is_number = match (value, set) {
            (Some(value), _) => self.counts_in(name) && self.is_plain_expression(value),
            (None, Some(value)) => self.is_plain_expression(value),
            (None, None) => matches!(rest, "++" | "--") && self.counts_in(name),
        };
        let is_own = check::is_harmless_name(name) && self.is_the_shells_own(name) && !variables::is_integer(name);
        (check::is_name(name) && is_own && is_number).then_some(name)
    }

    /// The variables in the head of a loop such as `for ((i=0; i<n; i++))`, if all of them are numbers before its first
    /// iteration.
    fn counters(&mut self, node: Node<'t>) -> Option<Vec<String>> {
        let body = node.child_by_field_name("body")?;
        let head = cut::between(self.source, node.start_byte()..body.start_byte());
        let (head, _) = head.strip_prefix("for")?.trim_start().strip_prefix("((")?.split_once("))")?;
        let [start, rest @ ..] = head.split(';').collect::<Vec<_>>().try_into().unwrap_or([""; 3]);
        let (name, first) = start.split_once('=').map(|(name, first)| (name.trim(), first.trim()))?;
        let words = || {
            let all = rest.iter().flat_map(|part| part.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
            all.filter(|word| !word.is_empty() && !word.bytes().all(|b| b.is_ascii_digit()))
        };
        let is_known = |word: &str| word == name || check::is_name(word) && self.counts_in(word);
        let plain = |c: char| c.is_ascii_alphanumeric() || "_ <>=+-*/%".contains(c);
        let counts = check::is_name(name)
            && self.is_the_shells_own(name)
            && !first.is_empty()
            && first.bytes().all(|b| b.is_ascii_digit())
            && rest.iter().all(|part| part.chars().all(plain))
            && words().all(is_known);
        counts.then(|| {
            self.state.set(name, Some(vec![WordPart::Number]));
            words().chain([name]).map(str::to_owned).collect()
        })
    }

    /// `! command`; `redirects` are those of the command.
    pub(super) fn negated(&mut self, node: Node<'t>, redirects: &[Node<'t>]) -> Walked {
        let [inner] = named(node).try_into().map_err(|_: Vec<Node>| Unreadable)?;
        if !check::blank_follows(self.source, node.start_byte() + 1) {
            return Err(Unreadable);
        }
        self.with_redirects(inner, redirects)?;
        let failed = self.failed.take();
        let succeeded = self.state.clone();
        self.state = failed.unwrap_or_else(|| succeeded.clone());
        self.failed = Some(succeeded);
        Ok(())
    }

    /// Statements in sequence. If one fails, the next still runs; after the last, the caller decides.
    pub(super) fn sequence(&mut self, nodes: &[Node<'t>]) -> Walked {
        // The grammar takes `;;` for a separator everywhere.
        let is_of_case = |node: &Node| node.parent().is_some_and(|parent| parent.kind() == "case_item");
        if nodes.iter().any(|node| node.kind() == ";;" && !is_of_case(node)) {
            return Err(Unreadable);
        }
        for (at, node) in nodes.iter().enumerate().filter(|(_, node)| node.is_named()) {
            if let Some(failed) = self.failed.take() {
                self.state.or(&failed);
            }
            let is_background =
                nodes[at + 1..].iter().find(|next| next.kind() != "comment").is_some_and(|next| next.kind() == "&");
            match is_background {
                true => {
                    let first = self.found.len();
                    self.aside(|walk| walk.statement(*node))?;
                    // It runs beside everything behind it.
                    self.unordered.push(first..usize::MAX);
                }
                false => self.statement(*node)?,
            }
        }
        Ok(())
    }

    /// In a subprocess: its changes are lost when it ends.
    pub(super) fn aside(&mut self, run: impl FnOnce(&mut Self) -> Walked) -> Walked {
        let before = self.state.clone();
        run(self)?;
        self.state = before;
        self.failed = None;
        Ok(())
    }

    /// `redirects` are those of the last command.
    pub(super) fn pipeline(&mut self, node: Node<'t>, redirects: &[Node<'t>]) -> Walked {
        let shared = self.input.shared();
        let outer = std::mem::replace(&mut self.input, shared);
        let parts = named(node);
        let first = self.found.len();
        // A single program opens its files when it starts.
        let waits = |part: &Node| !matches!(part.kind(), "command" | "redirected_statement");
        let is_unordered = parts.split_last().is_some_and(|(_, before)| before.iter().any(waits));
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                self.input = std::mem::take(&mut self.output);
            }
            let redirects = if at + 1 == parts.len() { redirects } else { &[] };
            self.aside(|walk| walk.with_redirects(*part, redirects))?;
        }
        if is_unordered {
            self.unordered.push(first..self.found.len());
        }
        self.input = outer;
        Ok(())
    }

    /// `a && b`, `a || b`; `redirects` are those of the last command.
    pub(super) fn list(&mut self, node: Node<'t>, redirects: &[Node<'t>]) -> Walked {
        let children = all(node);
        let [left, operator, right] = children.as_slice() else {
            // Comments between them.
            return Err(Unreadable);
        };
        self.statement(*left)?;
        let failed = self.failed.take().unwrap_or_else(|| self.state.clone());
        let succeeded = self.state.clone();
        match operator.kind() {
            "&&" => {
                self.with_redirects(*right, redirects)?;
                let mut either = self.failed.take().unwrap_or_else(|| self.state.clone());
                either.or(&failed);
                self.failed = Some(either);
            }
            "||" => {
                self.state = failed;
                self.with_redirects(*right, redirects)?;
                self.state.or(&succeeded);
            }
            _ => return Err(Unreadable),
        }
        Ok(())
    }

    fn condition(&mut self, node: Node<'t>) -> Walked {
        let mut ends: Vec<ShellState> = Vec::new();
        self.branch(node, &mut ends)?;
        let mut end = ends.pop().ok_or(Unreadable)?;
        ends.iter().for_each(|other| end.or(other));
        self.state = end;
        self.failed = None;
        Ok(())
    }

    /// A condition, the statements it guards, and the alternatives; the possible states at the end.
    fn branch(&mut self, node: Node<'t>, ends: &mut Vec<ShellState>) -> Walked {
        let children: Vec<_> = with_fields(node);
        let (conditions, bodies): (Vec<_>, Vec<_>) = match node.kind() {
            "else_clause" => (Vec::new(), children),
            // The grammar has no field for the condition of an `elif`: it comes before `then`.
            _ => {
                let then = all(node).into_iter().find(|child| child.kind() == "then").ok_or(Unreadable)?;
                children
                    .into_iter()
                    .filter(|(child, _)| *child != then)
                    .partition(|(child, _)| child.end_byte() <= then.start_byte())
            }
        };
        let is_clause = |node: &Node| matches!(node.kind(), "elif_clause" | "else_clause");
        let conditions: Vec<Node> = conditions.into_iter().map(|(node, _)| node).collect();
        let has_condition = node.kind() != "else_clause";
        self.sequence(&conditions)?;
        let failed = self.failed.take().unwrap_or_else(|| self.state.clone());
        let (clauses, bodies): (Vec<Node>, Vec<Node>) = bodies.into_iter().map(|(node, _)| node).partition(is_clause);
        self.sequence(&bodies)?;
        self.settle();
        ends.push(self.state.clone());
        if !has_condition {
            return Ok(());
        }
        self.state = failed.clone();
        let mut is_covered = false;
        for clause in clauses {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err(Unreadable);
            }
            is_covered |= clause.kind() == "else_clause";
            self.branch(clause, ends)?;
            self.depth -= 1;
        }
        if !is_covered {
            ends.push(failed);
        }
        Ok(())
    }

    /// Whether the last statement failed no longer matters.
    pub(super) fn settle(&mut self) {
        if let Some(failed) = self.failed.take() {
            self.state.or(&failed);
        }
    }

    /// At the end of a loop's iteration: `break` and `continue` lead here as well.
    pub(super) fn land(&mut self) {
        if let Some(jumped) = self.jumped.take() {
            self.state.or(&jumped);
        }
    }

    fn while_loop(&mut self, node: Node<'t>) -> Walked {
        let fields = with_fields(node);
        let body = node.child_by_field_name("body").ok_or(Unreadable)?;
        // Including separators such as `&`; the first is `while` or `until`.
        let conditions: Vec<Node> = fields
            .iter()
            .skip(1)
            .map(|(child, _)| *child)
            .filter(|child| child.end_byte() <= body.start_byte())
            .collect();
        let is_until = self.text(node).starts_with("until");
        // A command that consumes part of the input would leave a partial line for the next `read`.
        let input = std::mem::take(&mut self.input);
        let only_reads = matches!(conditions.as_slice(), [read] | [read, _] if read.kind() == "command" && read.child_by_field_name("name").is_some_and(|name| self.text(name) == "read"));
        self.input = if only_reads && self.leaves_input(body) { input.clone() } else { input.shared() };
        self.repeat(|walk| {
            walk.sequence(&conditions)?;
            if is_until {
                let failed = walk.failed.take().unwrap_or_else(|| walk.state.clone());
                walk.state = failed;
            }
            let ends = walk.failed.take().unwrap_or_else(|| walk.state.clone());
            walk.statement(body)?;
            walk.settle();
            walk.state.or(&ends);
            Ok(())
        })?;
        self.input = input;
        Ok(())
    }

    /// Whether no command in the body of a loop reads the loop's own input: each reads none, or gets a file from a
    /// quoted variable.
    fn leaves_input(&self, node: Node<'t>) -> bool {
        if node.kind() == "command" {
            let name = node.child_by_field_name("name").map(|name| self.text(name)).unwrap_or_default();
            let reads_none = matches!(
                name,
                "echo"
                    | "printf"
                    | "["
                    | "test"
                    | "true"
                    | ":"
                    | "basename"
                    | "dirname"
                    | "mkdir"
                    | "touch"
                    | "rm"
                    | "mv"
                    | "cp"
                    | "git"
                    | "continue"
                    | "break"
                    | "ls"
                    | "stat"
            );
            let has_file =
                named(node).iter().any(|child| self.text(*child).starts_with("\"$") && self.text(*child).len() > 3);
            let is_reader = matches!(
                name,
                "wc" | "cat" | "head" | "tail" | "grep" | "sed" | "sort" | "uniq" | "cut" | "tr" | "awk"
            );
            let names_input = named(node)
                .iter()
                .any(|child| matches!(self.text(*child), "-" | "--") || self.text(*child).contains("/dev/"));
            let has_file = has_file && !names_input;
            let is_piped =
                node.parent().is_some_and(|parent| parent.kind() == "pipeline" && named(parent).first() != Some(&node));
            if !reads_none && !(is_reader && (has_file || is_piped)) {
                return false;
            }
        }
        // A redirect gives a command another input.
        if node.kind() == "redirected_statement" && all(node).iter().any(|child| self.text(*child).starts_with("< ")) {
            return true;
        }
        named(node).into_iter().all(|child| self.leaves_input(child))
    }

    /// Repeats until another iteration would add nothing new.
    pub(super) fn repeat(&mut self, mut round: impl FnMut(&mut Self) -> Walked) -> Walked {
        let start = self.found.len();
        for at in 0.. {
            let before = self.state.clone();
            let first = self.found.len();
            if at > 3 {
                self.state.lose();
            }
            round(self)?;
            self.settle();
            self.land();
            self.state.or(&before);
            if self.state == before || self.state.is_lost() && at > 4 {
                break;
            }
            // The next iteration is more general and reports the same again.
            self.found.truncate(first);
        }
        self.unordered.push(start..self.found.len());
        self.failed = None;
        Ok(())
    }
}

/// Whether no command of the text can change the shell's folder.
fn stays_in_folder(text: &str) -> bool {
    let changes = ["cd", "pushd", "popd", "source", "eval", "builtin", "command", "trap", "alias"];
    let mut words = text.split(|c: char| !c.is_alphanumeric() && !"_-./".contains(c));
    // `. FILE`, also behind a keyword.
    let is_source = |part: &str| {
        let keywords = ["!", "time", "do", "then", "else", "if", "while", "until", "elif"];
        part.split_whitespace().find(|word| !keywords.contains(word)) == Some(".")
    };
    !words.any(|word| changes.contains(&word))
        && !text.split([';', '&', '|', '\n', '(', ')', '{', '}', '`']).any(is_source)
}
