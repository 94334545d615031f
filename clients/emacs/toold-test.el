;;; toold-test.el --- Tests of toold.el against the real daemon  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; env --ignore-signal=PIPE emacs -Q --batch -L . -l toold-test.el -f toold-test-run
;; since only an Emacs in batch mode ends when it writes to a daemon that is gone;
;; with TOOLCTL set to the program, and toold and toold-test-daemon beside it.  TOOLD_UPDATE=1
;; writes the captured screens into the README.

;;; Code:

(require 'ert)
(require 'toold)

(defconst toold-test--folder
  (file-name-directory (or load-file-name buffer-file-name)))

(defvar toold-test--shared nil "Folders of the daemon that most tests share.")
(defvar toold-test--base nil "The folder that holds those of the test's daemon.")
(defvar toold-test--daemon nil "Folders of the test's daemon, a process.")
(defvar toold-test--work nil "The folder that the test works in.")

(defconst toold-test--plugin "
hygge.register_tool{
  name = 'greet', description = 'Greets somebody. Politely.', parallelizable = true,
  input_schema = {
    type = 'object',
    properties = {
      name = {type = 'string', description = 'Whom'},
      times = {type = 'integer', minimum = 1},
      loud = {type = 'boolean'},
      language = {type = 'string', enum = {'english', 'norwegian'}},
      titles = {type = 'array', items = {type = 'string'}},
    },
    required = {'name'}, additionalProperties = false,
  },
  execute = function(ctx, input)
    for i = 1, input.times or 1 do
      ctx.progress{message = 'greeting', progress = i, total = input.times or 1}
    end
    local hello = input.language == 'norwegian' and 'hei ' or 'hello '
    local titles = input.titles and table.concat(input.titles, ' ') .. ' ' or ''
    return hello .. titles .. input.name .. (input.loud and '!' or '')
  end,
}
hygge.register_tool{
  name = 'wait_for_ever', description = 'Waits until it is stopped', parallelizable = true,
  input_schema = {type = 'object'},
  execute = function(ctx) ctx.progress('waiting') hygge.sleep('1h') end,
}
hygge.register_tool{
  name = 'fail', description = 'Fails', input_schema = {type = 'object'},
  execute = function() error('out of luck') end,
}
hygge.register_command{
  name = 'hi', description = 'Says hi', execute = function(ctx, input) return 'hi ' .. input end,
}
")

(defun toold-test--wait (what condition)
  "Wait until CONDITION, a function, returns a value; WHAT names it."
  (let ((deadline (+ (float-time) 30)) seen)
    (while (not (setq seen (funcall condition)))
      (when (> (float-time) deadline)
        (error "Timed out waiting for %s" what))
      (accept-process-output nil 0.01))
    seen))

(defun toold-test--folders ()
  "Start `toold-test-daemon', which makes folders for a daemon; give its process.
Their paths are its property `paths'.  It removes them, and stops what
runs there, when it gets no more input, as when this Emacs has ended."
  (let* ((harness (expand-file-name "toold-test-daemon"
                                    (file-name-directory (getenv "TOOLCTL"))))
         (process (make-process :name "toold-test-daemon" :command (list harness)
                                :connection-type 'pipe :noquery t
                                :filter #'toold-test--answered)))
    (process-put process 'paths
                 (toold-test--ask process
                                  (list :plugins (list :tools.lua toold-test--plugin))))
    process))

(defun toold-test--answered (process text)
  "Keep TEXT that PROCESS has written."
  (process-put process 'answer (concat (process-get process 'answer) text)))

(defun toold-test--ask (folders request)
  "Send REQUEST to FOLDERS, a process, and give its answer."
  (process-put folders 'answer nil)
  (process-send-string folders (concat (json-serialize request) "\n"))
  (toold-test--wait "the answer of toold-test-daemon"
                    (lambda ()
                      (string-suffix-p "\n" (or (process-get folders 'answer) ""))))
  (let ((answer (json-parse-string (process-get folders 'answer) :object-type 'plist)))
    (when (plist-get answer :error)
      (error "%s" (plist-get answer :error)))
    answer))

(defun toold-test--path (folders name)
  "The path that FOLDERS, a process, gave for NAME, a keyword."
  (plist-get (process-get folders 'paths) name))

(defun toold-test--environment (folders)
  "An environment that points to FOLDERS, a process."
  (append (cl-loop for (name value)
                   on (toold-test--path folders :environment) by #'cddr
                   collect (concat (substring (symbol-name name) 1) "=" value))
          ;; So that `echo' is asked about, too.
          (list "TOOLD_PERMISSION_READ_ONLY_COMMANDS=ask" "XDG_RUNTIME_DIR")
          process-environment))

(defun toold-test--stop-daemon (folders)
  "Stop the daemon of FOLDERS, a process, and check that nothing of it is left."
  (toold-test--ask folders "stop"))

(defun toold-test--remove (folders)
  "Stop the daemon of FOLDERS, a process, and remove them."
  (toold-test--stop-daemon folders)
  (process-send-eof folders)
  (toold-test--wait "the end of toold-test-daemon"
                    (lambda () (not (process-live-p folders))))
  (should (= 0 (process-exit-status folders))))

(defun toold-test--in (folders body)
  "Call BODY in a new work folder of FOLDERS, a process."
  (let* ((process-environment (toold-test--environment folders))
         (toold-test--daemon folders)
         (toold-test--base (toold-test--path folders :root))
         (toold-test--work (make-temp-file (expand-file-name "work" toold-test--base) t))
         (toold-program (getenv "TOOLCTL"))
         (default-directory (file-name-as-directory toold-test--work))
         (toold--known-sessions (make-hash-table :test #'equal))
         (buffers (buffer-list)))
    (unwind-protect
        (funcall body)
      (toold-mode -1)
      (toold-disconnect)
      (setq toold--prompts nil)
      (dolist (buffer (cl-set-difference (buffer-list) buffers))
        (with-current-buffer buffer
          (set-buffer-modified-p nil))
        (kill-buffer buffer))
      (delete-directory toold-test--work t))))

(defmacro toold-test-deftest (name &rest body)
  "Define the test NAME with BODY.  Its daemon is shared with others."
  (declare (indent 1))
  `(ert-deftest ,name ()
     (toold-test--in toold-test--shared (lambda () ,@body))))

(defmacro toold-test-deftest-alone (name &rest body)
  "Define the test NAME with BODY, with a daemon of its own, not started."
  (declare (indent 1))
  `(ert-deftest ,name ()
     (let ((folders (toold-test--folders)))
       (unwind-protect
           (toold-test--in folders (lambda () ,@body))
         (toold-test--remove folders)))))

(defun toold-test--write (name content)
  "Write CONTENT to the file NAME of the work folder; give its path."
  (let ((path (expand-file-name name toold-test--work)))
    (with-temp-file path (insert content))
    path))

(defun toold-test--agent ()
  "Another connection, of a frontend that acts for a model."
  (let ((other (toold--open)))
    (toold--await other "session.open"
                  (list :cwd toold-test--work :role "agent"
                        :client '(:name "other")) 30)
    other))

(defmacro toold-test--answering (key &rest body)
  "Run BODY with asks answered by KEY, a function of prompt and choices."
  (declare (indent 1))
  `(cl-letf (((symbol-function 'read-multiple-choice)
              (lambda (prompt choices &rest _)
                (let ((key (funcall ,key prompt choices)))
                  (or (assq key choices) (error "No choice %c" key))))))
     ,@body))

(defconst toold-test--stranger "
import socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen(0)
if sys.argv[2] == 'full':
    waiting = socket.socket(socket.AF_UNIX)
    waiting.connect(sys.argv[1])
print('ready', flush=True)
while sys.argv[2] == 'close':
    listener.accept()[0].close()
sys.stdin.read()
" "A program that listens at the daemon's socket and is none.")

(toold-test-deftest-alone toold-another-program-at-the-socket
  (make-directory (file-name-directory (toold-socket)) t)
  (dolist (case '(("close" . "closes each connection")
                  ("full" . "accepts no connections")
                  ("silent" . "No answer to daemon.ping")))
    (let* ((toold-start-timeout 1)
           (output "")
           (stranger (make-process
                      :name "stranger" :noquery t
                      :filter (lambda (_ text) (setq output (concat output text)))
                      :command (list "python3" "-c" toold-test--stranger
                                     (toold-socket) (car case)))))
      (unwind-protect
          (progn
            (toold-test--wait "the stranger listens"
                              (lambda () (string-match-p "ready" output)))
            (let ((err (should-error (toold--connect t) :type 'toold-error)))
              (should (string-match-p (cdr case) (cadr err)))))
        (delete-process stranger)
        (delete-file (toold-socket))))))

;; The cases that the clients in all languages are tested with.
(ert-deftest toold-socket-is-found-as-in-the-table ()
  (let ((cases (with-temp-buffer
                 (insert-file-contents
                  (expand-file-name "../../proto/tests/socket.json"
                                    toold-test--folder))
                 (json-parse-buffer))))
    (should (> (length cases) 10))
    (seq-doseq (case cases)
      (let* ((files (gethash "files" case (make-hash-table)))
             (folders (append (gethash "folders" case []) nil))
             (toold-socket nil)
             (process-environment nil))
        (maphash #'setenv (gethash "environment" case))
        (cl-letf (((symbol-function 'user-uid) (lambda () 7))
                  ((symbol-function 'file-directory-p)
                   (lambda (path) (member path folders)))
                  ((symbol-function 'toold--read)
                   (lambda (path)
                     (let ((file (gethash path files)))
                       (if (hash-table-p file) (json-serialize file) file)))))
          (should (equal (list (gethash "case" case) (gethash "socket" case))
                         (list (gethash "case" case)
                               (condition-case nil (toold-socket)
                                 (toold-error :null))))))))))

(toold-test-deftest-alone toold-first-call-starts-the-daemon
  (should-not (toold-connected-p))
  (let ((result (toold-execute "greet" '(:name "Ada"))))
    (should (equal "hello Ada" (toold-text result)))
    (should-not (toold-error-p result)))
  (should (= #o700 (file-modes (file-name-directory (toold-socket))))))

(toold-test-deftest toold-bad-news-is-a-result
  (let ((result (toold-execute "fail")))
    (should (toold-error-p result))
    (should (string-match-p "out of luck" (toold-text result)))))

(toold-test-deftest toold-what-cannot-run-is-an-error
  (let ((err (should-error (toold-execute "gret" '(:name "Ada"))
                           :type 'toold-error)))
    (should (string-match-p "did you mean greet" (nth 1 err)))
    (should (= -32001 (nth 2 err))))
  (let ((err (should-error (toold-execute "greet") :type 'toold-error)))
    (should (= -32602 (nth 2 err)))
    (should (equal "invalid_args" (plist-get (nth 3 err) :kind)))))

(toold-test-deftest toold-progress-is-shown
  (let (seen)
    (toold-execute "greet" '(:name "Ada" :times 3)
                   (lambda (progress) (push (plist-get progress :progress) seen)))
    (should (equal '(3.0 2.0 1.0) seen))))

(toold-test-deftest toold-quit-cancels-the-call
  (let ((call-id nil))
    (should
     (eq 'quit
         (condition-case nil
             (toold-execute "wait_for_ever" nil
                            (lambda (progress)
                              (setq call-id (plist-get progress :call_id))
                              ;; As the key does, while the editor waits.
                              (setq quit-flag t)))
           (quit 'quit))))
    (should call-id)
    (should-not toold--calls)
    (toold-test--wait
     "the call's end"
     (lambda ()
       (= 0 (length (plist-get (toold-request "calls.list") :calls)))))))

(toold-test-deftest toold-a-call-goes-on-beside-others
  (let* (failure
         (cancel (toold-execute-async "wait_for_ever" nil
                                      (lambda (err _) (setq failure err)))))
    (should (equal "hello Bo" (toold-text (toold-execute "greet" '(:name "Bo")))))
    (funcall cancel)
    (toold-test--wait "the end" (lambda () failure))
    (should (= -32800 (plist-get failure :code)))
    (should-not toold--calls)))

(toold-test-deftest-alone toold-a-lost-connection-is-restored
  (toold-execute "greet" '(:name "Ada"))
  (let ((session (gethash toold-test--work toold--known-sessions)))
    (should session)
    (toold-mode 1)
    (toold-test--stop-daemon toold-test--daemon)
    (toold-test--wait "the loss" (lambda () (not (toold-connected-p))))
    (should (equal " toold-" (toold--lighter)))
    ;; Somebody else starts it.
    (toold--spawn)
    (toold-test--wait "the editor is back" #'toold-connected-p)
    (should (equal " toold" (toold--lighter)))
    (should (equal "hello Bo" (toold-text (toold-execute "greet" '(:name "Bo")))))
    (should (equal session (gethash toold-test--work toold--known-sessions)))))

(toold-test-deftest-alone toold-when-not-allowed-no-daemon-is-started
  (let ((toold-start nil))
    (should (string-match-p
             "No daemon is running"
             (nth 1 (should-error (toold-execute "greet") :type 'toold-error))))))

(toold-test-deftest-alone toold-a-daemon-that-does-not-start-is-an-error
  (let* ((program (toold-test--write
                   "broken" "#!/bin/sh\necho no luck today >&2\nexit 3\n"))
         (toold-program program))
    (set-file-modes program #o700)
    (let ((message (nth 1 (should-error (toold-execute "greet")
                                        :type 'toold-error))))
      (should (string-match-p "no luck today" message)))))

(toold-test-deftest toold-each-folder-has-its-session
  (toold-test--write "a.txt" "outer\n")
  (make-directory "below")
  (toold-test--write "below/a.txt" "inner\n")
  (should (string-match-p "outer" (toold-text (toold-execute "read" '(:path "a.txt")))))
  (let ((default-directory (expand-file-name "below/")))
    (should (string-match-p "inner" (toold-text (toold-execute "read" '(:path "a.txt"))))))
  (should (string-match-p "outer" (toold-text (toold-execute "read" '(:path "a.txt"))))))

(toold-test-deftest toold-call-asks-for-what-is-required
  (let (asked)
    (cl-letf (((symbol-function 'completing-read)
               (lambda (prompt table &rest _)
                 (push prompt asked)
                 (cond ((equal prompt "Tool: ")
                        (should (member "greet" (all-completions "gr" table)))
                        (should (equal "  Greets somebody."
                                       (funcall (completion-metadata-get
                                                 (completion-metadata "" table nil)
                                                 'annotation-function)
                                                "greet")))
                        "greet")
                       ((string-match-p "language" prompt)
                        (should (equal '("english" "norwegian") table))
                        "norwegian")
                       ((string-match-p "loud" prompt) "true"))))
              ((symbol-function 'read-string)
               (lambda (prompt &rest _)
                 (push prompt asked)
                 (cond ((string-match-p "name" prompt) "Ada")
                       ((string-match-p "times" prompt) "2")
                       ((string-match-p "titles" prompt) "[\"Dr\", \"of maths\"]")))))
      (call-interactively #'toold-call)
      (should (equal '("greet name (Whom): " "Tool: ") asked))
      (with-current-buffer "*toold greet*"
        (should (equal "hello Ada" (buffer-string)))
        (should (derived-mode-p 'toold-result-mode)))
      (let ((current-prefix-arg '(4)))
        (call-interactively #'toold-call))
      (with-current-buffer "*toold greet*"
        (should (equal "hei Dr of maths Ada!" (buffer-string)))))))

(toold-test-deftest toold-the-list-shows-and-calls-tools
  (save-window-excursion
    (toold-list)
    (goto-char (point-min))
    (should (search-forward "greet" nil t))
    (should (looking-at-p " +plugin tools +Greets somebody\\.$"))
    (cl-letf (((symbol-function 'read-string) (lambda (&rest _) "Eve")))
      (call-interactively #'toold-list-call))
    (with-current-buffer "*toold greet*"
      (should (equal "hello Eve" (buffer-string))))
    (toold-list-describe)
    (with-current-buffer "*toold help*"
      (should (string-match-p "name: string, required\n  Whom" (buffer-string)))
      (should (string-match-p "One of english, norwegian." (buffer-string))))))

(toold-test-deftest toold-a-command-of-a-plugin-is-run
  (toold-run-command "hi" "there all")
  (with-current-buffer "*toold /hi*"
    (should (equal "hi there all" (buffer-string)))))

(toold-test-deftest toold-an-ask-shows-its-diff
  (let (seen)
    (toold-test--answering (lambda (prompt _)
                             (setq seen (list prompt
                                              (with-current-buffer "*toold ask*"
                                                (should (derived-mode-p 'diff-mode))
                                                (buffer-string))))
                             ?y)
      (should-not (toold-error-p
                   (toold-execute "write" '(:path "new.txt" :content "one\ntwo\n")))))
    (should (equal "write wants file.write" (car seen)))
    (should (string-prefix-p
             (format "write wants file.write: %s/new.txt\n" toold-test--work)
             (nth 1 seen)))
    (should (string-match-p (format "^1: Allow in this emacs session: %s/\\*$"
                                    toold-test--work)
                            (nth 1 seen)))
    (should (string-match-p "^\\+one\n\\+two$" (nth 1 seen)))
    (should-not (get-buffer "*toold ask*"))
    (should (file-exists-p "new.txt"))))

(toold-test-deftest toold-a-denial-says-why
  (cl-letf (((symbol-function 'read-string) (lambda (&rest _) "not here")))
    (toold-test--answering (lambda (_ _) ?d)
      (let ((result (toold-execute "bash" '(:command "touch made"))))
        (should (toold-error-p result))
        (should (string-match-p "not here" (toold-text result))))))
  (should-not (file-exists-p "made")))

(toold-test-deftest toold-an-answer-can-hold-for-more
  (let ((asked 0))
    (toold-test--answering (lambda (_ choices)
                             (cl-incf asked)
                             (if (assq ?1 choices) ?1 ?s))
      (toold-execute "bash" '(:command "touch one"))
      (toold-execute "bash" '(:command "touch one")))
    (should (= 1 asked))
    (should (file-exists-p "one"))))

(toold-test-deftest toold-what-is-left-open-is-shown-again
  (let (result)
    (toold-test--answering (lambda (_ _) (signal 'quit nil))
      (toold-execute-async "bash" '(:command "echo it ran")
                           (lambda (_ got) (setq result got)))
      (toold-test--wait "the ask is left open"
                        (lambda () (and toold--prompts
                                        (null (toold--prompts-due))))))
    (should (equal " toold?1" (toold--lighter)))
    (toold-test--answering (lambda (_ _) ?y)
      (toold-asks)
      (toold-test--wait "the result" (lambda () result)))
    (should (string-match-p "it ran" (toold-text result)))
    (toold-test--wait "the ask goes" (lambda () (null toold--prompts)))))

(toold-test-deftest toold-a-prompt-that-others-answer-goes-away
  (toold-request "daemon.ping")
  (let ((other (toold--open)) request result)
    (toold--await other "session.open" (list :cwd toold-test--work) 30)
    (toold--subscribe other "permissions.subscribe" nil
                      (lambda (item)
                        (setq request (or (plist-get item :request) request))))
    (cl-letf (((symbol-function 'read-multiple-choice)
               (lambda (&rest _)
                 (toold-test--wait "the other's turn" (lambda () request))
                 (toold--request other "permissions.reply"
                                 (list :request_id (plist-get request :request_id)
                                       :action "deny"))
                 ;; The user never answers.
                 (toold-test--wait "the prompt is taken away" #'ignore))))
      (setq result (toold-execute "bash" '(:command "touch made"))))
    (should (toold-error-p result))
    (should-not toold--active)
    (toold--close other)))

(toold-test-deftest toold-an-open-prompt-says-who-waits-now
  (toold-request "daemon.ping")
  (let ((ask (lambda (&rest agents)
               (toold--prompt-item
                'ask (list :type "asked"
                           :request (list :request_id "ask_1" :tool "bash" :category "shell" :target "make"
                                          :suggestions [] :agents (vconcat agents))))))
        shown)
    (cl-letf (((symbol-function 'read-multiple-choice)
               (lambda (&rest _)
                 (push (with-current-buffer "*toold ask*" (buffer-string)) shown)
                 (if (cdr shown)
                     (toold--prompt-item 'ask '(:type "resolved" :request_id "ask_1"))
                   (funcall ask "codex" "claude-code"))
                 ;; The user never answers.
                 (toold-test--wait "the prompt is taken away" #'ignore))))
      (funcall ask "codex")
      (toold-test--wait "the end" (lambda () (null toold--prompts))))
    (should (= 2 (length shown)))
    (should (string-match-p "codex and claude-code" (car shown)))
    (should-not (string-match-p "claude-code" (cadr shown)))
    (should-not toold--active)))

(toold-test-deftest toold-an-ask-for-a-folder-says-who-wants-it
  (toold-mode 1)
  (toold-execute "greet" '(:name "Ada"))
  (let* ((folder (expand-file-name "home/letters" toold-test--base))
         (open (lambda ()
                 (let ((agent (toold--open)))
                   (list agent
                         (plist-get
                          (toold--await agent "session.open"
                                        (list :cwd folder :role "agent"
                                              :client '(:name "the agent"))
                                        30)
                          :workspace)))))
         seen)
    (make-directory folder t)
    (with-temp-file (expand-file-name "letter.txt" folder)
      (insert "dear reader\n"))
    (let ((agent (funcall open)))
      (should (equal "pending" (cadr agent)))
      (toold-test--answering
          (lambda (prompt choices)
            (setq seen (list prompt (mapcar #'car choices)
                             (with-current-buffer "*toold ask*"
                               (buffer-string))))
            ?y)
        (should (string-match-p
                 "dear reader"
                 (toold-text (toold--await (car agent) "tools.execute"
                                           '(:name "read" :arguments (:path "letter.txt"))
                                           30)))))
      (jsonrpc-shutdown (car agent)))
    (should (equal "read wants a folder to work in" (car seen)))
    (should (equal '(?y ?s ?n ?d) (cadr seen)))
    (should (string-match-p
             (regexp-quote (format "use %s as a workspace of the agent" folder))
             (nth 2 seen)))
    (let ((agent (funcall open)))
      (should (equal "open" (cadr agent)))
      (jsonrpc-shutdown (car agent)))))

(toold-test-deftest toold-commands-find-the-toolchains-of-the-buffer
  (let ((process-environment
         (append (list "VIRTUAL_ENV=/a/venv" "LC_TIME=C" "SOMETHING=else" "GOROOT"
                       (concat "GOPATH=" (string (unibyte-char-to-multibyte 255))))
                 process-environment)))
    (toold-test--answering (lambda (&rest _) ?y)
      (let ((output (split-string (toold-text (toold-execute "bash" '(:command "env")))
                                "\n")))
        (should (member "VIRTUAL_ENV=/a/venv" output))
        (should (member "LC_TIME=C" output))
        (should-not (cl-some (lambda (line)
                               (string-match-p "\\`\\(SOMETHING\\|GOROOT\\|GOPATH\\)=" line))
                             output))))))

(toold-test-deftest toold-asks-of-agents-come-here
  (toold-mode 1)
  (toold-request "daemon.ping")
  (let ((agent (toold-test--agent)) asked)
    (toold-test--answering (lambda (prompt _) (setq asked prompt) ?y)
      (should (string-match-p
               "for an agent"
               (toold-text (toold--await agent "tools.execute"
                                         '(:name "bash" :arguments
                                           (:command "echo for an agent")))))))
    (should (equal "bash wants shell" asked))
    (toold--close agent)))

(ert-deftest toold-control-characters-are-shown-and-not-obeyed ()
  (should (equal "bash wants shell: echo ^[[2J rm x"
                 (toold--headline '(:tool "bash" :category "shell"
                                    :target "echo \e[2J\nrm x")))))

(toold-test-deftest toold-the-level-is-shown-and-changed
  (should (string-match-p "^Level read (the default)" (toold-level)))
  (should (string-match-p "^Level edit (set by a person" (toold-level "edit")))
  (should (string-match-p "^Level read (the default)"
                          (toold-level "configured"))))

(toold-test-deftest toold-the-last-call-that-changed-a-file-is-undone
  (call-process "git" nil nil nil "init" "-q")
  (make-directory "out")
  (toold-test--write ".gitignore" "out/\n")
  (toold-test--write "notes.txt" "tea\n")
  (toold-test--answering (lambda (_ _) ?y)
    (should-not (toold-error-p
                 (toold-execute "bash" '(:command "rm -r out notes.txt")))))
  (let ((stays "^out does not come back: nothing of it was kept$") shown)
    (cl-letf (((symbol-function 'yes-or-no-p)
               (lambda (&rest _)
                 (setq shown (with-current-buffer "*toold undo*"
                               (buffer-string))))))
      (should (string-match-p stays (toold-undo "notes.txt"))))
    (should (string-match-p stays shown))
    (should (string-match-p "^\\+tea$" shown))
    (should-not (get-buffer "*toold undo*"))
    (should (file-exists-p "notes.txt"))
    (should-error (toold-undo "notes.txt") :type 'toold-error)))

(ert-deftest toold-an-ask-says-who-asks-and-what-the-answers-cover ()
  (let ((ask '(:tool "s_echo" :category "mcp" :target "s/echo" :agent "codex"
               :subagent "Explore (a1)" :session_name "this codex session"
               :level "edit" :description "asks the\nserver"
               :misleading ["look twice"]
               :suggestions [(:scope "session" :pattern "s/echo")
                             (:scope "session" :pattern "s/mcp:read"
                              :covers "its tools that only read")])))
    (should (equal "s_echo for codex, sub-agent Explore (a1) wants mcp: s/echo"
                   (toold--headline ask)))
    (let ((details (toold--ask-details ask)))
      (dolist (words '("The agent says: asks the server" "Careful: look twice"
                       "Level: edit" "h: Allow in this project for 1 hour"
                       "1: Allow in this codex session: s/mcp:read \
(its tools that only read)"))
        (should (string-match-p (regexp-quote words) details))))
    (should (equal '("once" "session" "hour" "project" "always" "no"
                     "deny with reason" "1")
                   (mapcar #'cadar (toold--ask-choices ask))))))

;; All clients describe in the same words what an answer covers, and each is
;; tested with these cases.
(ert-deftest toold-the-answers-are-those-of-all-clients ()
  (let ((cases (with-temp-buffer
                 (insert-file-contents
                  (expand-file-name "../../proto/tests/answers.json"
                                    toold-test--folder))
                 (json-parse-buffer :object-type 'plist))))
    (should (> (length cases) 4))
    (seq-doseq (case cases)
      (let ((shown (mapcar (lambda (choice)
                             (let ((label (nth 2 (car choice))))
                               (concat (downcase (substring label 0 1))
                                       (substring label 1))))
                           (toold--ask-choices (plist-get case :ask))))
            (expected (append (plist-get case :answers)
                              '("deny, and say why") nil)))
        ;; The order is that of the keys.
        (should (equal (sort expected #'string<) (sort shown #'string<)))))))

(ert-deftest toold-every-waiting-agent-is-named ()
  (should (equal "bash for codex and claude wants shell: ls"
                 (toold--headline '(:tool "bash" :category "shell" :target "ls"
                                    :agent "codex"
                                    :agents ["codex" "emacs" "claude"])))))

(defconst toold-test--question
  '(:question "Which colour?"
    :options [(:label "Red" :description "as blood") (:label "Green")]))

(toold-test-deftest toold-a-question-is-answered
  (let (asked)
    (cl-letf (((symbol-function 'completing-read)
               (lambda (prompt table &rest _)
                 (setq asked (list prompt (all-completions "" table)))
                 "Green")))
      (should (string-match-p
               "Green" (toold-text (toold-execute "question" toold-test--question)))))
    (should (equal '("Which colour? " ("Red" "Green")) asked)))
  (cl-letf (((symbol-function 'completing-read-multiple)
             (lambda (&rest _) (list "Red" "and blue"))))
    (let ((text (toold-text (toold-execute
                             "question"
                             (append toold-test--question
                                     '(:multiple t :allow_other t))))))
      (should (string-match-p "Red" text))
      (should (string-match-p "and blue" text))))
  (cl-letf (((symbol-function 'completing-read) (lambda (&rest _) "")))
    (should (toold-execute "question" toold-test--question))))

(defun toold-test--call-provided (agent name &optional arguments)
  "Let AGENT call the provided tool NAME with ARGUMENTS; give its result."
  (toold-test--answering (lambda (_ _) ?y)
    (toold--await agent "tools.execute"
                  (list :name name :arguments (or arguments toold--empty)))))

(toold-test-deftest toold-agents-see-the-editor
  (toold-request "daemon.ping")
  (let* ((agent (toold-test--agent))
         (path (toold-test--write "a.txt" "one\ntwo\nthree\n")))
    (toold-test--wait
     "the editor's tools"
     (lambda () (= 4 (length (plist-get (toold--await agent "tools.list"
                                                      '(:source "frontend") 30)
                                        :tools)))))
    (let ((result (toold-test--call-provided agent "emacs_open" '(:path "a.txt" :line 2))))
      (should (equal (format "opened %s at line 2" path) (toold-text result))))
    (with-current-buffer (find-file-noselect path)
      (should (= 2 (line-number-at-pos)))
      (goto-char (point-max))
      (insert "four"))
    (let ((result (toold-test--call-provided agent "emacs_buffers")))
      (should (string-prefix-p (concat path "  (current, line 4; unsaved)")
                               (toold-text result))))
    (should (toold-error-p (toold-test--call-provided agent "emacs_selection")))
    (with-current-buffer (find-file-noselect path)
      (transient-mark-mode 1)
      (goto-char (point-min))
      (push-mark (line-end-position) t t))
    (should (equal (concat path ":1\none")
                   (toold-text (toold-test--call-provided agent "emacs_selection"))))
    (should (equal "no diagnostics"
                   (toold-text (toold-test--call-provided agent "emacs_diagnostics"))))
    (let ((result (toold-test--call-provided agent "emacs_open" '(:path "none.txt"))))
      (should (toold-error-p result))
      (should (string-match-p "is not a file" (toold-text result))))
    (toold--close agent)))

;; A daemon that is killed.

(defun toold-test--kill (pid)
  "Kill the daemon PID, and wait until it has ended.
Emacs handles no events meanwhile, so it does not know yet."
  (signal-process pid 'SIGKILL)
  (let ((deadline (+ (float-time) 30)))
    ;; Files are closed by the last thread, and the first one may end before it.
    (while (cl-some (lambda (thread)
                      (string-match-p "\\`[0-9]+ (.*) [^ZX]"
                                      (or (toold--read (concat thread "/stat")) "")))
                    (ignore-errors
                      (directory-files (format "/proc/%d/task" pid) t "\\`[0-9]")))
      (when (> (float-time) deadline)
        (error "The daemon did not end")))))

(defun toold-test--lost ()
  "Wait until the loss of the daemon is seen."
  (toold-test--wait "the loss" (lambda () (not (toold-connected-p)))))

(defmacro toold-test--error-text (&rest body)
  "The text of the error that BODY signals, as a user sees it."
  `(condition-case err
       (progn ,@body (error "No error"))
     (toold-error (error-message-string err))))

(defun toold-test--survives (run)
  "Call RUN with a function that kills the daemon.
Check that there is one message about it, and that the next call
works.  RUN returns the text of the error that a user sees, if any."
  (toold-mode 1)
  (let* ((pid (plist-get (toold-request "daemon.status") :pid))
         (heard nil)
         (keep (lambda (format &rest arguments)
                 (when format
                   (push (apply #'format-message format arguments) heard))
                 nil)))
    (cl-letf (((symbol-function 'message) keep))
      (let ((text (funcall run (lambda () (toold-test--kill pid)))))
        (when (stringp text) (push text heard)))
      (should (equal "hello Bo" (toold-text (toold-execute "greet" '(:name "Bo"))))))
    (let ((about (cl-remove-if
                  (lambda (each)
                    (string-match-p "^wait_for_ever:\\|^greet:\\| done in " each))
                  heard)))
      (should (string-match-p "[Tt]he daemon is gone; [^\"]+\\'" (string-join about)))
      (should-not (cdr about)))))

(defmacro toold-test-deftest-killed (name &rest body)
  "Define the test NAME, in which BODY kills the daemon by calling `die'."
  (declare (indent 1))
  `(toold-test-deftest-alone ,name
     (toold-test--survives (lambda (die) ,@body))))

(toold-test-deftest-killed toold-killed-idle
  (funcall die)
  (toold-test--lost))

(toold-test-deftest-killed toold-killed-idle-and-not-seen-yet
  (funcall die))

(toold-test-deftest-killed toold-killed-idle-and-not-seen-by-a-list
  (funcall die)
  (toold-tools))

(toold-test-deftest-killed toold-killed-idle-and-not-seen-by-a-slash-command
  (funcall die)
  (toold-run-command "hi" "there"))

(toold-test-deftest-killed toold-killed-call
  (toold-test--error-text
   (toold-execute "wait_for_ever" nil (lambda (_) (funcall die)))))

(toold-test-deftest-killed toold-killed-call-without-waiting
  (let (heard)
    (toold-execute-async "wait_for_ever" nil
                         (lambda (err _) (setq heard err))
                         (lambda (_) (funcall die)))
    (toold-test--wait "the end" (lambda () heard))
    (plist-get heard :message)))

(toold-test-deftest-killed toold-killed-slash-command
  (run-at-time 0 nil die)
  ;; It may be over before.
  (condition-case err
      (progn (toold-run-command "hi" "there")
             (toold-test--lost))
    (toold-gone (error-message-string err))))

(toold-test-deftest-killed toold-killed-ask-answered-at-once
  (toold-test--answering (lambda (_ _) (funcall die) ?y)
    (toold-test--error-text (toold-execute "bash" '(:command "touch x")))))

(toold-test-deftest-killed toold-killed-ask-answered-after-the-loss
  (toold-test--answering (lambda (_ _) (funcall die) (toold-test--lost) ?y)
    (toold-test--error-text (toold-execute "bash" '(:command "touch x")))))

(toold-test-deftest-killed toold-killed-ask-with-a-reason
  (cl-letf (((symbol-function 'read-string)
             (lambda (&rest _) (funcall die) "not here")))
    (toold-test--answering (lambda (_ _) ?d)
      (toold-test--error-text
       (toold-execute "bash" '(:command "touch x"))))))

(toold-test-deftest-killed toold-killed-ask-of-another
  (let ((other (toold-test--agent)))
    (toold-test--answering (lambda (_ _) (funcall die) ?y)
      (toold--request other "tools.execute"
                      '(:name "bash" :arguments (:command "touch x")
                        :call_id "1"))
      (toold-test--lost))))

(toold-test-deftest-killed toold-killed-question
  (cl-letf (((symbol-function 'completing-read)
             (lambda (&rest _) (funcall die) "green")))
    (toold-test--error-text
     (toold-execute "question" '(:question "Which tea?"
                                 :options [(:label "green")
                                           (:label "black")])))))

(toold-test-deftest-killed toold-killed-provided-tool
  (let ((connection toold--connection))
    (funcall die)
    (toold--invoked connection '(:invocation_id "1" :name "emacs_buffers"))
    (toold-test--lost)))

(toold-test-deftest-killed toold-killed-another-folder
  (make-directory "below")
  (let ((default-directory (expand-file-name "below/")))
    (funcall die)
    (toold-execute "greet" '(:name "Al"))))

;; At a terminal, by keys.

(defun toold-test--tmux (&rest arguments)
  "Run tmux with ARGUMENTS, on a server for this test; give its output."
  (with-temp-buffer
    ;; In the tests' own folder: tmux leaves its socket.
    (let* ((socket (expand-file-name "tmux" toold-test--base))
           (status (apply #'call-process "tmux" nil t nil
                          "-S" socket "-f" "/dev/null" arguments)))
      (unless (eql status 0)
        (error "Tmux failed: %s" (buffer-string)))
      (buffer-string))))

(defun toold-test--screen (&rest parts)
  "Wait until all PARTS are on the screen, and give it."
  (let ((screen ""))
    (condition-case nil
        (toold-test--wait
         "the screen"
         (lambda ()
           (setq screen (toold-test--tmux "capture-pane" "-p"))
           (cl-every (lambda (part) (string-search part screen)) parts)))
      (error (error "No %S on the screen:\n%s" parts screen)))
    screen))

(defun toold-test--type (text &rest keys)
  "Type TEXT, then press KEYS."
  (toold-test--tmux "send-keys" "-l" text)
  (dolist (key keys)
    (toold-test--tmux "send-keys" key)))

(defun toold-test--check-screen (name screen)
  "Compare SCREEN with the one of NAME in the README, or write it there."
  (let ((file (expand-file-name "README.md" toold-test--folder))
        (mark (format "<!-- screen: %s -->\n```text\n" name))
        (steady screen))
    (dolist (each `((,(regexp-quote toold-test--work) . "/home/you/tea")
                    ("done in [0-9]+ ms" . "done in 3 ms")
                    ("[ \t]+$" . "")
                    ("\n+\\'" . "\n")))
      (setq steady (replace-regexp-in-string (car each) (cdr each) steady t t)))
    (with-temp-buffer
      (insert-file-contents file)
      (search-forward mark)
      (let ((from (point)))
        (search-forward "```")
        (forward-line 0)
        (if (getenv "TOOLD_UPDATE")
            (progn (delete-region from (point))
                   (insert steady)
                   (write-region nil nil file nil 'quiet))
          (should (equal (buffer-substring from (point)) steady)))))))

(toold-test-deftest toold-the-user-sees-the-diff-and-quits-a-call
  (toold-test--write "notes.txt" "green tea\n")
  (unwind-protect
      (progn
        (toold-test--tmux
         "new-session" "-d" "-x" "80" "-y" "24"
         (mapconcat #'shell-quote-argument
                    ;; What compiles in the background is killed with it and leaves its files.
                    (list "env" (concat "TMPDIR=" (file-name-directory (getenv "TOOLD_SOCKET")))
                          (expand-file-name invocation-name invocation-directory)
                          "-Q" "-nw" "-L" toold-test--folder "-l" "toold"
                          "--eval" (format "(setq toold-program %S)" toold-program)
                          "--eval" "(menu-bar-mode -1)"
                          "--eval" "(setq-default mode-line-format
                             (list \" %b  \" '(:eval (toold--lighter))))"
                          "notes.txt")
                    " "))
        (toold-test--screen "green tea" "notes.txt")
        (toold-test--type "" "M-x")
        (toold-test--type "toold-call" "Enter")
        (toold-test--screen "Tool:")
        (toold-test--type "write" "Enter")
        (toold-test--screen "write path")
        (toold-test--type "black.txt" "Enter")
        (toold-test--screen "write content")
        (toold-test--type "black coffee" "Enter")
        (toold-test--check-screen
         "ask" (toold-test--screen "write wants file.write" "+black coffee" "deny with"))
        (toold-test--type "y")
        (toold-test--check-screen
         "done" (toold-test--screen "write done in" "*toold write*"))
        (should (file-exists-p "black.txt"))
        (toold-test--type "" "M-x")
        (toold-test--type "toold-call" "Enter")
        (toold-test--screen "Tool:")
        (toold-test--type "wait_for_ever" "Enter")
        (toold-test--screen "wait_for_ever: waiting")
        (let ((running (lambda ()
                         (plist-get (plist-get (toold-request "daemon.status") :calls)
                                    :in_flight))))
          (should (= 1 (funcall running)))
          (toold-test--type "" "C-g")
          (toold-test--screen "Quit")
          (toold-test--wait "the call's end" (lambda () (= 0 (funcall running))))))
    (ignore-errors (toold-test--tmux "kill-server"))))

(defun toold-test-run ()
  "Run all tests, or those that TOOLD_TEST names; end Emacs."
  (unless (string-match "^SigIgn:\t[0-9a-f]*[13579bdf][0-9a-f]\\{3\\}$"
                        (or (toold--read "/proc/self/status") ""))
    (error "Run the tests with SIGPIPE ignored: env --ignore-signal=PIPE emacs ..."))
  (setq toold-test--shared (toold-test--folders))
  (let* ((message-log-max t)
         (stats (ert-run-tests-batch (let ((name (getenv "TOOLD_TEST"))) (if (member name (quote (nil ""))) t name))))
         (failed (ert-stats-completed-unexpected stats)))
    (toold-test--remove toold-test--shared)
    (kill-emacs (if (and (zerop failed) (> (ert-stats-completed stats) 0)) 0 1))))

(provide 'toold-test)
;;; toold-test.el ends here
