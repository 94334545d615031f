;;; toold.el --- Tools of the toold daemon, for people and agents  -*- lexical-binding: t; -*-

;; Author: The toold project
;; Version: 0.2.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: tools, processes
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; toold is a daemon with one tool registry for all your agents and
;; editors.  This is its client for Emacs:
;;
;; - `toold-call' calls a tool, with completion of its name and prompts
;;   for its arguments; C-g cancels it;
;; - `toold-list' lists the tools, `toold-run-command' runs a plugin's
;;   slash command;
;; - permission requests and questions of all agents appear in the
;;   minibuffer, with the diff of the change beside them;
;; - `toold-undo' undoes the call that changed a file last, after a look
;;   at its diff;
;; - `toold-mode' keeps the connection, so that prompts appear at any time
;;   and agents can see your open files, diagnostics and selection.
;;
;; Calls start the daemon if it is not running.  From Lisp, use
;; `toold-execute', `toold-execute-async' and `toold-request'.

;;; Code:

(require 'cl-lib)
(require 'jsonrpc)
(require 'json)
(require 'rmc)
(require 'subr-x)
(require 'tabulated-list)

(declare-function flymake-diagnostics "flymake" (&optional beg end))
(declare-function flymake-diagnostic-beg "flymake" (diag))
(declare-function flymake-diagnostic-text "flymake" (diag))
(declare-function flymake-diagnostic-type "flymake" (diag))
(declare-function project-root "project" (project))

(defgroup toold nil
  "Tools of the toold daemon."
  :group 'tools
  :prefix "toold-")

(defcustom toold-socket nil
  "Where the daemon listens.
When nil, it is the value of TOOLD_SOCKET, else toold/toold.sock in
XDG_RUNTIME_DIR, in XDG_STATE_HOME or in ~/.local/state."
  :type '(choice (const :tag "From the environment" nil) file))

(defcustom toold-program "toolctl"
  "The toolctl that starts a daemon if none is running.
It starts the toold beside it, else the one in PATH."
  :type 'string)

(defcustom toold-start t
  "Whether calls start a daemon if none is running."
  :type 'boolean)

(defcustom toold-start-timeout 10
  "How long the daemon's first answer may take, in seconds."
  :type 'number)

(defcustom toold-request-timeout 30
  "How long ordinary requests may take, in seconds.
Tool calls have the daemon's limits."
  :type 'number)

(defcustom toold-lend t
  "Which of Emacs's own tools agents may call, such as `emacs_buffers'.
Either t, nil or a list of names."
  :type '(choice (const :tag "All" t) (const :tag "None" nil) (repeat string)))

(defcustom toold-folder-function #'toold-folder
  "Function that returns the folder that calls of a buffer work in."
  :type 'function)

(define-error 'toold-error "Toold")
;; The daemon did not read the request, so it was not carried out.
(define-error 'toold-not-read "Toold" 'toold-error)
;; The connection was lost: an error that users can cause, so that it does not
;; enter the debugger, and of files, so that its message is shown without quotes.
(define-error 'toold-gone "Toold" '(toold-error user-error file-error))


;;; The connection

;; The daemon has the environment of the client that started it, perhaps days
;; ago.  Only Emacs knows a virtual environment that was activated since.
(defconst toold--toolchain
  '("PATH" "VIRTUAL_ENV" "CONDA_PREFIX" "CONDA_DEFAULT_ENV" "PYENV_VERSION"
    "NVM_DIR" "NVM_BIN" "FNM_DIR" "VOLTA_HOME" "CARGO_HOME" "RUSTUP_HOME"
    "RUSTUP_TOOLCHAIN" "GOPATH" "GOROOT" "GOBIN" "JAVA_HOME" "SDKMAN_DIR"
    "GEM_HOME" "RBENV_VERSION" "ASDF_DIR" "MISE_DATA_DIR" "NIX_PATH"
    "SSH_AUTH_SOCK" "LANG" "LC_*" "TZ")
  "Variables by which programs find their toolchains.
Sessions get those that are set in the buffer that connects.  A final
* matches any text.  All clients of toold pass the same ones.")

(defun toold--toolchain-p (name)
  "Whether the variable NAME is one by which programs find their toolchains."
  (cl-some (lambda (known)
             (if (string-suffix-p "*" known)
                 (string-prefix-p (substring known 0 -1) name)
               (equal known name)))
           toold--toolchain))

(defun toold--environment ()
  "The variables that a session gets, as a plist."
  (let ((names (delete-dups (mapcar (lambda (entry)
                                      (car (split-string entry "=")))
                                    process-environment))))
    (cl-loop for name in names
             for value = (and (toold--toolchain-p name) (getenv name))
             ;; JSON holds only UTF-8.
             when (and value
                       (not (memq 'eight-bit (find-charset-string value))))
             append (list (intern (concat ":" name)) value))))

(defclass toold-connection (jsonrpc-process-connection)
  ((socket :initarg :socket :accessor toold--socket
           :documentation "The process of the socket.")
   (last-id :initform nil :accessor toold--last-id
            :documentation "Id of the last request.")
   (items :initform (make-hash-table :test #'equal) :accessor toold--items
          :documentation "By subscription: the function that gets its items.")
   (sessions :initform (make-hash-table :test #'equal)
             :accessor toold--sessions
             :documentation "By folder: the session's id.")
   (replaced :initform nil :accessor toold--replaced
             :documentation "Whether the daemon has announced that another one takes over.")
   (reported :initform nil :accessor toold--reported
             :documentation "Whether a request reports that the connection was lost."))
  :documentation "A connection to the toold daemon.")

(cl-defmethod jsonrpc-connection-send :before
  ((connection toold-connection) &rest args)
  "Remember the id among ARGS, which cancels the request of CONNECTION."
  (when-let* ((id (plist-get args :id)))
    (setf (toold--last-id connection) id)))

(defvar toold--connection nil
  "The connection, or nil.")

(defvar toold--known-sessions (make-hash-table :test #'equal)
  "By folder: the session to resume after a reconnect.")

(defvar toold--reconnect-timer nil
  "Timer that tries to connect while `toold-mode' is on.")

(defconst toold--empty (make-hash-table)
  "A value that becomes an empty object in JSON.")

(defun toold--absolute (variable)
  "The value of environment VARIABLE, if it is an absolute path."
  (let ((value (getenv variable)))
    (and value (file-name-absolute-p value)
         (not (string-prefix-p "~" value))
         value)))

(defun toold--read (path)
  "The text of the file PATH, or nil when it cannot be read."
  (ignore-errors
    (with-temp-buffer
      (let ((coding-system-for-read 'utf-8-unix))
        (insert-file-contents path))
      (buffer-string))))

(defun toold--running (path)
  "The running daemon that the record PATH describes.
Return nil for a record that a killed daemon left."
  (let* ((text (toold--read path))
         (record (and text
                      (ignore-errors
                        (json-parse-string text :object-type 'plist))))
         (boot-id (toold--read "/proc/sys/kernel/random/boot_id"))
         (started (plist-get record :started)))
    (and (stringp (plist-get record :socket))
         (stringp (plist-get record :database))
         (equal (plist-get record :boot_id)
                (and boot-id (string-trim boot-id)))
         (or (not started)
             ;; The 22nd field; the second is the name in parentheses,
             ;; which may hold anything.
             (let ((stat (or (toold--read (format "/proc/%s/stat"
                                                  (plist-get record :pid)))
                             "")))
               (and (string-match ".*)" stat)
                    (equal (nth 19 (split-string
                                    (substring stat (match-end 0))))
                           (number-to-string started)))))
         record)))

(defun toold-socket ()
  "The path of the daemon's socket, whether or not it is running.
It is `toold-socket' or $TOOLD_SOCKET; else where the daemon of
the state folder runs, as it has recorded there; else the first
place below $XDG_RUNTIME_DIR, /run/user/UID and the state folder
where no daemon with another database runs."
  (or (and toold-socket (expand-file-name toold-socket))
      (toold--absolute "TOOLD_SOCKET")
      (let* ((home (toold--absolute "HOME"))
             (state-home (or (toold--absolute "XDG_STATE_HOME")
                             (and home (concat home "/.local/state"))))
             (state (and state-home (concat state-home "/toold")))
             (runtime (toold--absolute "XDG_RUNTIME_DIR"))
             (run-user (format "/run/user/%d" (user-uid)))
             (free-p
              (lambda (folder)
                (let ((record (toold--running
                               (concat folder "/toold.sock.json"))))
                  (or (not state) (not record)
                      (equal (plist-get record :database)
                             (concat state "/toold.db"))))))
             (recorded (and state
                            (toold--running (concat state "/daemon.json"))))
             (folder (cl-find-if
                      free-p
                      (delq nil
                            (list (and runtime (concat runtime "/toold"))
                                  (and (file-directory-p run-user)
                                       (concat run-user "/toold"))
                                  state)))))
        (cond
         (recorded (plist-get recorded :socket))
         (folder (concat folder "/toold.sock"))
         (t (signal 'toold-error
                    (list (if state
                              (format "Daemons with other databases than %s/toold.db run at all usual places; set TOOLD_SOCKET"
                                      state)
                            "Cannot tell where the socket is; set TOOLD_SOCKET, XDG_RUNTIME_DIR or HOME"))))))))

(defun toold-folder ()
  "The root of the current project, else `default-directory'."
  (let ((project (and (fboundp 'project-current)
                      (not (file-remote-p default-directory))
                      (project-current))))
    (expand-file-name (if project (project-root project) default-directory))))

(defun toold-connected-p ()
  "Whether there is a connection to the daemon."
  (and toold--connection (jsonrpc-running-p toold--connection)))

(defun toold--open ()
  "Return a new connection, or nil when nobody listens.
Return the symbol `full' when the queue of the socket is full."
  (condition-case err
      ;; `:nowait', since a blocking connect has no timeout.
      (let ((process (make-network-process
                      :name "toold" :family 'local :service (toold-socket)
                      :nowait t :coding 'utf-8-emacs-unix :noquery t)))
        (while (eq (process-status process) 'connect)
          (accept-process-output process 0.01))
        ;; A failed process has its error as its status.
        (when (consp (process-exit-status process))
          (let ((failure (cons (process-status process)
                               (process-exit-status process))))
            (delete-process process)
            (signal (car failure) (cdr failure))))
        (prog1
            (apply #'make-instance 'toold-connection
                   :name "toold" :process process :socket process
                   :notification-dispatcher #'toold--notified
                   :on-shutdown #'toold--lost
                   ;; No log: answers can be long.
                   (if (fboundp 'jsonrpc-continuation-count)
                       '(:events-buffer-config (:size 0))
                     '(:events-buffer-scrollback-size 0)))
          (add-function :around (process-sentinel process)
                        #'toold--quietly)))
    (file-error
     (let ((why (downcase (format "%s" (cddr err)))))
       (cond
        ((string-match-p "no such file\\|refused\\|reset" why) nil)
        ((string-match-p "temporarily unavailable\\|would block" why) 'full)
        (t (signal 'toold-error
                   (list (format "Can't connect to %s: %s" (toold-socket)
                                 (error-message-string err))))))))))

(defun toold--quietly (sentinel &rest arguments)
  "Call SENTINEL with ARGUMENTS, but hide the exit status.
A socket has none, and `toold--lost' says what has happened."
  (cl-letf (((symbol-function 'jsonrpc--message) #'ignore))
    (apply sentinel arguments)))

(defun toold--spawn ()
  "Start a daemon, unless one is running by now; wait until it answers."
  (let ((program (executable-find toold-program))
        (default-directory "/")
        (process-environment
         (cl-remove-if (lambda (each) (string-prefix-p "INSIDE_EMACS=" each))
                       process-environment)))
    (unless program
      (signal 'toold-error
              (list (format "Found no program %s; set `toold-program'"
                            toold-program))))
    (with-temp-buffer
      ;; Not a process of Emacs, which would end with Emacs.
      (let ((status (call-process program nil t nil
                                  "--socket" (toold-socket) "status")))
        (unless (eql status 0)
          (signal 'toold-error
                  (list (format "The daemon did not start: %s"
                                (string-trim (buffer-string))))))))))

(defun toold--answers-p (connection deadline)
  "Whether CONNECTION answers before DEADLINE.
It does not if the daemon was about to stop."
  (condition-case err
      (progn
        (toold--await connection "daemon.ping" nil
                      (max 0.1 (- deadline (float-time))))
        t)
    (toold-error
     (when (jsonrpc-running-p connection)
       (toold--close connection)
       (signal (car err) (cdr err))))))

(defun toold--no-answer (how)
  "Signal that the daemon does not answer; HOW is the verb phrase."
  (signal 'toold-error
          (list (format "The daemon at %s %s after %s s"
                        (toold-socket) how toold-start-timeout))))

(defun toold--reach (deadline)
  "Return a connection that answers before DEADLINE, or nil.
It is nil when nobody listens.  When another daemon takes over
meanwhile, return a connection to that one."
  (let ((pause 0.01) (connection (toold--open)))
    (while (and connection
                (or (eq connection 'full)
                    (not (toold--answers-p connection deadline))))
      (when (> (float-time) deadline)
        (toold--no-answer
         (if (eq connection 'full)
             "accepts no connections; given up"
           "closes each connection before it answers; given up")))
      (accept-process-output nil pause)
      (setq pause (min 0.2 (* 2 pause))
            connection (toold--open)))
    connection))

(defun toold--connect (start)
  "Return the connection; connect if there is none.
If no daemon is running, start one with START, else return nil."
  (if (toold-connected-p)
      toold--connection
    (let* ((deadline (+ (float-time) toold-start-timeout))
           (connection (toold--reach deadline)))
      (while (and start (not connection))
        (when (> (float-time) deadline)
          (toold--no-answer "does not answer"))
        (toold--spawn)
        (setq connection (toold--reach deadline)))
      (when connection
        (setq toold--connection connection)
        (toold--set-up connection)
        (force-mode-line-update t))
      connection)))

(defun toold--ensure ()
  "Return the connection; start a daemon if necessary and allowed."
  (or (toold--connect toold-start)
      (signal 'toold-error
              (list (format "No daemon is running at %s" (toold-socket))))))

(defconst toold--again-for 8
  "Seconds for which an unread request is sent again.")

(defun toold--not-read-p (connection err)
  "Whether the daemon did not read the request on CONNECTION; ERR ended it."
  (and (toold--replaced connection)
       (eql (plist-get err :code) -1)
       (not (jsonrpc-running-p connection))))

(defun toold--again (work)
  "Return the value of WORK, a function of the connection.
Call it again with the next connection when another daemon takes
over before this one reads the request."
  (let (deadline done result)
    (while (not done)
      (condition-case err
          (setq result (funcall work (toold--ensure))
                done t)
        (toold-not-read
         (setq deadline (or deadline (+ (float-time) toold--again-for)))
         (when (> (float-time) deadline)
           (signal (car err) (cdr err)))
         (accept-process-output nil 0.01))))
    result))

(defun toold--close (connection)
  "Close CONNECTION."
  (delete-process (toold--socket connection))
  (jsonrpc-shutdown connection t))

(defun toold-disconnect ()
  "Disconnect, so that the daemon cancels everything in flight."
  (interactive)
  (when toold--connection
    (let ((connection toold--connection))
      (setq toold--connection nil)
      (toold--close connection))))

(defun toold--lost (connection)
  "Forget CONNECTION, which has ended, and try to reconnect."
  (when (eq connection toold--connection)
    (setq toold--connection nil)
    (toold--prompts-clear)
    (unless (or (toold--replaced connection) (toold--reported connection))
      (message "Toold: the daemon is gone; %s"
               (if toold-start
                   "the next call starts it"
                 "waiting until it is back")))
    (toold--reconnect-later 0.25)
    (force-mode-line-update t)))

(defun toold--reconnect-later (seconds)
  "While `toold-mode' is on, try to connect in SECONDS.  Start no daemon."
  (when (timerp toold--reconnect-timer)
    (cancel-timer toold--reconnect-timer)
    (setq toold--reconnect-timer nil))
  (when (bound-and-true-p toold-mode)
    (setq toold--reconnect-timer
          (run-at-time
           seconds nil
           (lambda ()
             (setq toold--reconnect-timer nil)
             (unless (ignore-errors (toold--connect nil))
               (toold--reconnect-later (min 5 (* 2 seconds)))))))))


;;; Requests

(defun toold--request (connection method params &optional on-result on-error)
  "Send a request to CONNECTION and return its id.
METHOD is a string, PARAMS a plist.  ON-RESULT gets the result,
ON-ERROR an error object as a plist.  Signal `toold-not-read' when it
cannot be sent."
  (condition-case err
      (jsonrpc-async-request
       connection (intern (concat ":" method)) (or params toold--empty)
       :timeout nil
       :success-fn (or on-result #'ignore)
       :error-fn (lambda (err)
                   (funcall (or on-error #'ignore)
                            (toold--explained connection err))))
    (error
     (if (jsonrpc-running-p connection)
         (signal (car err) (cdr err))
       (signal 'toold-not-read (list (error-message-string err))))))
  (toold--last-id connection))

(defun toold--explained (connection err)
  "The error object ERR of CONNECTION, in words if the daemon is gone."
  (if (or (jsonrpc-running-p connection) (not (eql (plist-get err :code) -1)))
      err
    (setf (toold--reported connection) t)
    (list :code -1
          :message "Toold: the daemon is gone; it may or may not have run")))

(defun toold--cancel (connection id)
  "Cancel the request ID in the daemon of CONNECTION."
  (when (jsonrpc-running-p connection)
    (jsonrpc-notify connection :$/cancelRequest (list :id id))))

(defun toold--fail (err)
  "Signal the error object ERR, a plist."
  (signal 'toold-error
          (list (or (plist-get err :message) "The daemon returned an error")
                (plist-get err :code) (plist-get err :data))))

(defun toold--await (connection method params &optional timeout)
  "Make a request on CONNECTION and wait for its result.
METHOD and PARAMS are as in `toold--request', TIMEOUT is in seconds.
A quit cancels the request.  Prompts appear while it waits."
  (let* ((deadline (and timeout (+ (float-time) timeout)))
         (done nil) (result nil) (failure nil)
         (id (toold--request connection method params
                             (lambda (value) (setq done t result value))
                             (lambda (err) (setq done t failure err)))))
    (unwind-protect
        (while (not done)
          (when (and deadline (> (float-time) deadline))
            (signal 'toold-error (list (format "No answer to %s" method))))
          (toold--prompts-show)
          (accept-process-output nil 0.05))
      (unless done
        (toold--cancel connection id)))
    (when failure
      (cond
       ((toold--not-read-p connection failure)
        (signal 'toold-not-read
                '("Another daemon has taken over before the request was read")))
       ((eql (plist-get failure :code) -1)
        (signal 'toold-gone (list (plist-get failure :message))))
       (t (toold--fail failure))))
    result))

(defun toold-request (method &optional params)
  "Make any request of the protocol and wait for its result.
METHOD is a string, PARAMS a plist; the result is plists and vectors,
with nil for null and :json-false for false.  Signal `toold-error' on
failure."
  (toold--again
   (lambda (connection)
     (toold--await connection method params toold-request-timeout))))

(defun toold--session (connection)
  "The session of CONNECTION for the current buffer's folder."
  (let* ((folder (directory-file-name
                  (expand-file-name (funcall toold-folder-function))))
         (folder (if (string-empty-p folder) "/" folder)))
    (or (gethash folder (toold--sessions connection))
        (puthash folder (toold--open-session connection folder)
                 (toold--sessions connection)))))

(defun toold--open-session (connection folder)
  "Open the session for FOLDER on CONNECTION, and return its id."
  (let* ((known (gethash folder toold--known-sessions))
         (env (toold--environment))
         (params (append (list :cwd folder :protocol 2
                               :client (list :name "emacs"
                                             :version emacs-version))
                         (and env (list :env env))))
         (opened (condition-case err
                     (toold--await connection "session.open"
                                   (if known
                                       (append params (list :session_id known))
                                     params)
                                   toold-request-timeout)
                   (toold-not-read (signal (car err) (cdr err)))
                   ;; It may have been closed: open a new one.
                   (toold-error
                    (toold--await connection "session.open" params
                                  toold-request-timeout)))))
    ;; As in an editor that an agent has started.
    (when (member (plist-get opened :workspace) '("pending" "none"))
      (message "Tools may not work in %s yet; to allow it: toolctl workspaces allow %s"
               folder (shell-quote-argument folder)))
    (puthash folder (plist-get opened :session_id) toold--known-sessions)))

(defun toold--subscribe (connection method params on-item)
  "Subscribe on CONNECTION by METHOD with PARAMS; ON-ITEM gets the items."
  (toold--request connection method params
                  (lambda (id)
                    (puthash id on-item (toold--items connection)))
                  ;; An editor that an agent has started may not answer for
                  ;; you.
                  (lambda (err)
                    (when (jsonrpc-running-p connection)
                      (message "Toold: the daemon refused %s: %s" method
                               (plist-get err :message))))))

(defun toold--notified (connection method params)
  "Handle the notification METHOD with PARAMS of CONNECTION."
  (cond
   ((eq method 'tools.progress)
    (toold--progressed params))
   ((eq method 'daemon.closing)
    (setf (toold--replaced connection)
          (equal (plist-get params :reason) "restart")))
   (t
    (when-let* ((on-item (gethash (plist-get params :subscription)
                                  (toold--items connection))))
      (funcall on-item (plist-get params :result))))))

(defun toold--set-up (connection)
  "Set up CONNECTION: open the session, subscribe, provide the tools."
  (toold--session connection)
  (toold--subscribe connection "permissions.subscribe" nil
                    (lambda (item) (toold--prompt-item 'ask item)))
  (toold--subscribe connection "questions.subscribe" nil
                    (lambda (item) (toold--prompt-item 'question item)))
  (toold--provide connection))


;;; Calls

(defvar toold--calls nil
  "Calls in flight: plists with :id, :name and :on-progress.")

(defvar toold--prompts nil
  "Prompts that wait for an answer, the oldest first.
Plists with :id, :kind, :request and :left; the last is non-nil for
those that you have left open.")

(defvar toold--active nil
  "The prompt that is on the screen.")

(defvar toold--count 0
  "How many calls this Emacs has made.")

(defun toold--line (text)
  "TEXT on one line, with control characters made visible."
  (replace-regexp-in-string
   "[[:cntrl:]]"
   (lambda (char) (if (member char '("\n" "\t")) " " (text-char-description
                                                      (aref char 0))))
   (or text "") t t))

(defun toold--progressed (params)
  "Show the progress in PARAMS."
  (when-let* ((call (cl-find (plist-get params :call_id) toold--calls
                             :key (lambda (call) (plist-get call :id))
                             :test #'equal)))
    (let* ((words (string-trim (or (plist-get params :message)
                                   (plist-get params :text) "")))
           (progress (plist-get params :progress))
           (total (plist-get params :total))
           (message-log-max nil))
      (unless toold--active
        (message "%s" (toold--line
                       (string-join
                        (delq nil
                              (list (format "%s:" (plist-get call :name))
                                    (and progress total
                                         (format "%g/%g" progress total))
                                    (car (last (split-string words "\n")))))
                        " ")))))
    (when-let* ((on-progress (plist-get call :on-progress)))
      (funcall on-progress params))))

(defun toold--begin (name on-progress)
  "Record a call of NAME and return it; ON-PROGRESS gets its progress."
  (let ((call (list :id (format "emacs-%d-%d" (emacs-pid)
                                (cl-incf toold--count))
                    :name name :on-progress on-progress)))
    (push call toold--calls)
    call))

(defun toold--end (call)
  "Forget CALL, which has ended."
  (setq toold--calls (delq call toold--calls)))

(defun toold--execute-params (connection call name arguments)
  "Params to execute NAME with ARGUMENTS as CALL on CONNECTION."
  (list :name name :arguments (or arguments toold--empty)
        :call_id (plist-get call :id)
        :session_id (toold--session connection)
        :progress t))

(defun toold-execute (name &optional arguments on-progress)
  "Call the tool NAME with ARGUMENTS, a plist, and wait for its result.
A quit cancels the call.  ON-PROGRESS is called with each progress,
a plist.  The result is a plist with :content, :is_error and so on;
see `toold-text'.  Signal `toold-error' when the call could not run."
  (let ((call (toold--begin name on-progress)))
    (unwind-protect
        (toold--again
         (lambda (connection)
           (toold--await
            connection "tools.execute"
            (toold--execute-params connection call name arguments))))
      (toold--end call))))

(defun toold-execute-async (name arguments callback &optional on-progress)
  "Call the tool NAME with ARGUMENTS without waiting.
CALLBACK gets an error object or nil, and the result; both are
plists.  ON-PROGRESS is as in `toold-execute'.  Return a function
that cancels the call."
  (let ((call (toold--begin name on-progress))
        connection id deadline send failed)
    (setq send
          (lambda ()
            (toold--again
             (lambda (on)
               (setq connection on
                     id (toold--request
                         on "tools.execute"
                         (toold--execute-params on call name arguments)
                         (lambda (result)
                           (toold--end call)
                           (funcall callback nil result))
                         (lambda (err) (funcall failed err))))))))
    (setq failed
          (lambda (err)
            (unless deadline
              (setq deadline (+ (float-time) toold--again-for)))
            (if (and (toold--not-read-p connection err)
                     (< (float-time) deadline))
                ;; After the connection has ended.
                (run-at-time
                 0 nil
                 (lambda ()
                   (condition-case gone
                       (funcall send)
                     (toold-error
                      (toold--end call)
                      (funcall callback (list :message (cadr gone)) nil)))))
              (toold--end call)
              (funcall callback err nil))))
    (condition-case err
        (funcall send)
      (error
       (toold--end call)
       (signal (car err) (cdr err))))
    (lambda () (toold--cancel connection id))))

(defun toold-text (result)
  "The content of RESULT, as a string."
  (mapconcat
   (lambda (block)
     (pcase (plist-get block :type)
       ("text" (plist-get block :text))
       ("resource" (or (plist-get block :text)
                       (format "[resource %s%s]" (plist-get block :uri)
                               (let ((about (or (plist-get block :description) (plist-get block :name))))
                                 (if about (concat ": " about) "")))))
       (type (format "[%s %s]" type (plist-get block :mime_type)))))
   (plist-get result :content) "\n"))

(defun toold-error-p (result)
  "Whether the tool of RESULT failed."
  (eq (plist-get result :is_error) t))

(define-derived-mode toold-result-mode special-mode "Toold"
  "Mode of buffers that show the result of a tool.")

(defun toold--show (name result)
  "Show RESULT, of a call of NAME."
  (with-current-buffer (get-buffer-create (format "*toold %s*" name))
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert (toold-text result))
      (goto-char (point-min)))
    (toold-result-mode)
    (display-buffer (current-buffer)))
  (if (toold-error-p result)
      (message "%s reports an error" name)
    (message "%s done in %s ms" name (plist-get result :duration_ms))))

;;;###autoload
(defun toold-call (name arguments)
  "Call the tool NAME with ARGUMENTS, a plist, and show its result.
Interactively, complete the name and ask for the required arguments;
with a prefix argument, ask for all arguments.  While the call runs,
\\[keyboard-quit] cancels it."
  (interactive
   (let ((tool (toold--read-tool "Tool: ")))
     (list (plist-get tool :name)
           (toold--read-arguments tool current-prefix-arg))))
  (toold--show name (toold-execute name arguments)))

;;;###autoload
(defun toold-run-command (name input)
  "Run the slash command NAME of a plugin with INPUT, and show its result."
  (interactive
   (let* ((commands (append (plist-get (toold-request "commands.list")
                                       :commands)
                            nil))
          (names (mapcar (lambda (each)
                           (cons (plist-get each :name)
                                 (plist-get each :description)))
                         commands))
          (name (completing-read "Command: " (toold--table names) nil t)))
     (list name (read-string (format "/%s " name)))))
  (toold--show
   (concat "/" name)
   (toold--again
    (lambda (connection)
      (toold--await connection "commands.run"
                    (list :name name :input input
                          :session_id (toold--session connection)))))))


;;; Tools and their arguments

(defun toold-tools ()
  "The tools of the daemon, as a list of plists sorted by name."
  (append (plist-get (toold--again
                      (lambda (connection)
                        (toold--await
                         connection "tools.list"
                         (list :session_id (toold--session connection))
                         toold-request-timeout)))
                     :tools)
          nil))

(defun toold--first-sentence (text)
  "The first sentence of TEXT, on one line."
  (toold--line (if (string-match "\\`\\(\\(?:.\\|\n\\)*?[.:]\\)[ \n]" text)
                   (match-string 1 text)
                 text)))

(defun toold--table (names)
  "A completion table of NAMES, an alist of names and descriptions."
  (lambda (text predicate action)
    (if (eq action 'metadata)
        `(metadata
          (annotation-function
           . ,(lambda (name)
                (concat "  " (toold--first-sentence
                              (or (cdr (assoc name names)) ""))))))
      (complete-with-action action names text predicate))))

(defun toold--read-tool (prompt)
  "Read the name of a tool with PROMPT, and return the tool."
  (let* ((tools (toold-tools))
         (names (mapcar (lambda (tool)
                          (cons (plist-get tool :name)
                                (plist-get tool :description)))
                        tools))
         (name (completing-read prompt (toold--table names) nil t)))
    (or (cl-find name tools :test #'equal
                 :key (lambda (tool) (plist-get tool :name)))
        (user-error "No tool chosen"))))

(defun toold--keys (tool)
  "Names of the arguments of TOOL: a list of the required, and the others."
  (let* ((schema (plist-get tool :input_schema))
         (required (append (plist-get schema :required) nil))
         (all (cl-loop for (key _) on (plist-get schema :properties)
                       by #'cddr
                       collect (substring (symbol-name key) 1))))
    (list required (sort (cl-set-difference all required :test #'equal)
                         #'string<))))

(defun toold--property (tool key)
  "The schema of the argument KEY of TOOL."
  (plist-get (plist-get (plist-get tool :input_schema) :properties)
             (intern (concat ":" key))))

(defun toold--types (property)
  "The types of PROPERTY, as strings."
  (let ((type (plist-get property :type)))
    (if (stringp type) (list type) (append type nil))))

(defun toold--value (property text)
  "Convert TEXT to the type of PROPERTY.
A value that does not convert stays a string, so that the daemon says why."
  (let ((types (toold--types property)))
    (cond
     ((member "string" types) text)
     ((and (or (member "integer" types) (member "number" types))
           (string-match-p "\\`[-+]?[0-9.]+\\(?:[eE][-+]?[0-9]+\\)?\\'" text))
      (string-to-number text))
     ((and (member "boolean" types) (member text '("true" "false")))
      (if (equal text "true") t :json-false))
     (t (condition-case nil
            (json-parse-string text :object-type 'plist
                               :null-object nil :false-object :json-false)
          (json-error (if (member "array" types) (vector text) text)))))))

(defun toold--read-argument (tool key required)
  "Read the argument KEY of TOOL; nil when not REQUIRED and empty."
  (let* ((property (toold--property tool key))
         (types (toold--types property))
         (values (if (member "boolean" types)
                     '("true" "false")
                   (cl-remove-if-not #'stringp
                                     (append (plist-get property :enum) nil))))
         (about (toold--first-sentence (or (plist-get property :description)
                                           "")))
         (prompt (format "%s %s%s: " (plist-get tool :name) key
                         (cond ((string-empty-p about) "")
                               (t (format " (%s)" about)))))
         (text (cond
                (values (completing-read prompt values nil required))
                ((string-match-p "path\\|file" key)
                 ;; Not `read-file-name', which would change what you type.
                 (completing-read prompt #'completion-file-name-table))
                (t (read-string prompt)))))
    (unless (and (string-empty-p text) (or (not required) values))
      (toold--value property text))))

(defun toold--read-arguments (tool all)
  "Read the required arguments of TOOL, with ALL every one; return a plist."
  (pcase-let ((`(,required ,others) (toold--keys tool))
              (arguments nil))
    (dolist (key (if all (append required others) required))
      (let ((value (toold--read-argument tool key (member key required))))
        (when value
          (setq arguments (append arguments
                                  (list (intern (concat ":" key)) value))))))
    arguments))

(defvar toold-list-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'toold-list-call)
    (define-key map "d" #'toold-list-describe)
    map)
  "Keys of `toold-list-mode'.")

(define-derived-mode toold-list-mode tabulated-list-mode "Tools"
  "Mode of the list of tools."
  (setq tabulated-list-format [("Name" 18 t) ("From" 16 t) ("About" 0 nil)]
        tabulated-list-sort-key '("Name"))
  (add-hook 'tabulated-list-revert-hook #'toold--list-fill nil t)
  (tabulated-list-init-header))

(defun toold--list-fill ()
  "Fetch the entries of the list."
  (setq tabulated-list-entries
        (mapcar
         (lambda (tool)
           (let ((source (plist-get tool :source)))
             (list tool
                   (vector (plist-get tool :name)
                           (format "%s %s" (plist-get source :kind)
                                   (plist-get source :name))
                           (toold--first-sentence
                            (plist-get tool :description))))))
         (toold-tools))))

;;;###autoload
(defun toold-list ()
  "List the tools.
\\<toold-list-mode-map>\\[toold-list-call] calls the one at point, \
\\[toold-list-describe] describes it."
  (interactive)
  (let ((folder (funcall toold-folder-function)))
    (pop-to-buffer (get-buffer-create "*toold tools*"))
    (setq default-directory (file-name-as-directory folder))
    (toold-list-mode)
    (toold--list-fill)
    (tabulated-list-print)))

(defun toold--at-point ()
  "The tool at point."
  (or (tabulated-list-get-id) (user-error "No tool on this line")))

(defun toold-list-call (all)
  "Call the tool at point.  With prefix argument ALL, ask for all arguments."
  (interactive "P")
  (let ((tool (toold--at-point)))
    (toold-call (plist-get tool :name) (toold--read-arguments tool all))))

(defun toold-list-describe ()
  "Describe the tool at point."
  (interactive)
  (toold--describe (toold--at-point)))

;;;###autoload
(defun toold-describe (tool)
  "Describe TOOL: what it does, and its arguments."
  (interactive (list (toold--read-tool "Describe tool: ")))
  (toold--describe tool))

(defun toold--describe (tool)
  "Show the description of TOOL."
  (pcase-let ((`(,required ,others) (toold--keys tool)))
    (with-help-window "*toold help*"
      (princ (format "%s\n\n%s\n" (plist-get tool :name)
                     (plist-get tool :description)))
      (dolist (key (append required others))
        (let* ((property (toold--property tool key))
               (values (cl-remove-if-not
                        #'stringp (append (plist-get property :enum) nil))))
          (princ (format "\n%s: %s%s\n  %s\n" key
                         (string-join (toold--types property) " or ")
                         (if (member key required) ", required" "")
                         (toold--line (plist-get property :description))))
          (when values
            (princ (format "  One of %s.\n" (string-join values ", ")))))))))


;;; Permission requests and questions

(defvar toold--prompt-timer nil
  "Timer for prompts that wait until you do not type.")

(defun toold--prompt-item (kind item)
  "Handle ITEM of a subscription; KIND is `ask' or `question'."
  (if (equal (plist-get item :type) "asked")
      (let* ((request (plist-get item :request))
             (id (plist-get request :request_id))
             (known (toold--prompt id)))
        (if known
            (toold--prompt-renewed known request)
          (setq toold--prompts
                (append toold--prompts
                        (list (list :id id :kind kind :request request
                                    :left nil))))
          (toold--prompts-soon)))
    (toold--prompt-ended item))
  (force-mode-line-update t))

(defun toold--prompt-renewed (prompt request)
  "Take over REQUEST, as PROMPT is now; others may wait for the answer."
  (let ((before (toold--headline (plist-get prompt :request)))
        (now (toold--headline request)))
    (plist-put prompt :request request)
    (when (and (eq prompt toold--active) (not (equal before now)))
      (if (active-minibuffer-window)
          ;; Text that you type there is kept.
          (message "Toold: now %s" now)
        ;; Later, since this is called while a message is read.  It is
        ;; shown again, since it is still one of `toold--prompts'.
        (run-at-time 0 nil (lambda ()
                             (when (eq prompt toold--active)
                               (throw 'toold--over 'renewed))))))))

(defvar toold--answered nil
  "The ids of the prompts that were answered here.")

(defun toold--prompt-ended (item)
  "Close the prompt that ended with ITEM, and say how, unless you did it here."
  (let* ((id (plist-get item :request_id))
         (how (plist-get item :how))
         (here (member id toold--answered))
         (prompt (toold--prompt id)))
    (setq toold--answered (delete id toold--answered))
    (when (and prompt (not here) how (not (string-empty-p how)))
      (message "Toold: %s: %s" (toold--line how)
               (toold--headline (plist-get prompt :request))))
    (toold--prompt-over id)))

(defun toold--prompt (id)
  "The prompt with this ID."
  (cl-find id toold--prompts :test #'equal
           :key (lambda (prompt) (plist-get prompt :id))))

(defun toold--prompt-over (id)
  "Close the prompt ID, which needs no answer any more."
  (setq toold--prompts (delq (toold--prompt id) toold--prompts))
  (when (equal id (plist-get toold--active :id))
    ;; Later, since this is called while a message is read.
    (run-at-time 0 nil (lambda ()
                         (when (equal id (plist-get toold--active :id))
                           (throw 'toold--over 'over))))))

(defun toold--prompts-clear ()
  "Close everything in `toold--prompts', since the connection is lost."
  (dolist (prompt toold--prompts)
    (toold--prompt-over (plist-get prompt :id))))

(defun toold--prompts-soon ()
  "Show the entries of `toold--prompts' as soon as you do not type."
  (unless toold--prompt-timer
    (setq toold--prompt-timer
          (run-at-time 0.05 nil
                       (lambda ()
                         (setq toold--prompt-timer nil)
                         (with-local-quit (toold--prompts-show))
                         (when (toold--prompts-due)
                           (toold--prompts-soon)))))))

(defun toold--prompts-due ()
  "The entries of `toold--prompts' that are not left open."
  (cl-remove-if (lambda (prompt) (plist-get prompt :left)) toold--prompts))

(defun toold--typing-p ()
  "Whether you type, so that a key would answer a prompt by mistake."
  (and (not noninteractive)
       (or (active-minibuffer-window)
           (input-pending-p)
           (let ((idle (current-idle-time)))
             ;; While a command waits, you do not type.
             (and idle (< (float-time idle) 0.3))))))

(defun toold--prompts-show ()
  "Show the due entries of `toold--prompts' in turn, unless you type."
  (let ((due t))
    (while (and due (not toold--active) (not (toold--typing-p))
                (setq due (car (toold--prompts-due))))
      (let ((toold--active due))
        (condition-case err
            (catch 'toold--over
              (pcase (plist-get due :kind)
                ('ask (toold--ask (plist-get due :request)))
                ('question (toold--question (plist-get due :request))))
              (plist-put due :left t))
          (quit
           (plist-put due :left t)
           (message "Not answered; `toold-asks' shows it again"))
          (error
           (plist-put due :left t)
           (message "Toold: %s" (error-message-string err))))))))

;;;###autoload
(defun toold-asks ()
  "Show unanswered permission requests and questions again."
  (interactive)
  (toold--ensure)
  (unless toold--prompts
    (message "Nothing to answer"))
  (dolist (prompt toold--prompts)
    (plist-put prompt :left nil))
  (let ((toold--active nil))
    (toold--prompts-show)))

;;;###autoload
(defun toold-level (&optional level)
  "Show how much needs no approval in this folder's session.
With a LEVEL (interactively, with a prefix argument), change it;
\"configured\" stands for that of the configuration."
  (interactive
   (list (and current-prefix-arg
              (completing-read "Level: " '("read" "edit" "develop" "operate"
                                           "configured")
                               nil t))))
  (toold--ensure)
  (let* ((session (toold--session toold--connection))
         (now (toold--await
               toold--connection
               (if level "permissions.set_level" "permissions.level")
               (append (list :session_id session)
                       (and level (not (equal level "configured"))
                            (list :level level))))))
    (message "Level %s (%s)%s" (plist-get now :level)
             (toold--line (plist-get now :from))
             (if (and (plist-get now :unconfined)
                      (not (equal (plist-get now :level) "read")))
                 (concat "; commands cannot be confined here: "
                         (toold--line (plist-get now :unconfined)))
               ""))))

;;;###autoload
(defun toold-undo (path)
  "Undo the call of a tool or an agent that changed the file PATH last.
First show the diff of all that it changed, and what undo leaves as it
is, such as branches of Git and files elsewhere."
  (interactive
   (list (read-file-name "Undo the last change of: " nil buffer-file-name t)))
  (toold--ensure)
  (let* ((folder (directory-file-name (expand-file-name default-directory)))
         (params (list :path (expand-file-name path) :all t :folder folder))
         (undo (lambda (dry-run)
                 (toold--await toold--connection "files.undo"
                               (append params (and dry-run '(:dry_run t))))))
         (plan (funcall undo t)))
    (toold--beside
     "*toold undo*" (concat (toold--notes plan) (plist-get plan :diff))
     (lambda ()
       (when (yes-or-no-p "Undo this? ")
         (let* ((undone (funcall undo nil))
                (paths (mapcar (lambda (each)
                                 (toold--line (file-relative-name each)))
                               (plist-get undone :paths))))
           (message "Undid the changes to %s\n%s"
                    (string-join paths ", ") (toold--notes undone))))))))

(defun toold--beside (name details prompt)
  "Call PROMPT while DETAILS, a text with a diff, are shown in the buffer NAME."
  (let ((buffer (get-buffer-create name)))
    (unwind-protect
        (save-window-excursion
          (with-current-buffer buffer
            (let ((inhibit-read-only t))
              (erase-buffer)
              (insert details)
              (goto-char (point-min)))
            (diff-mode)
            (setq buffer-read-only t))
          (display-buffer buffer)
          (redisplay)
          (funcall prompt))
      (kill-buffer buffer))))

(defun toold--notes (answer)
  "Give the notes of ANSWER, which is of files.undo, as lines."
  (mapconcat (lambda (note) (concat (toold--line note) "\n"))
             (plist-get answer :notes) ""))

(defun toold--reply (method id params)
  "Answer the prompt ID by METHOD with PARAMS.
Do nothing when the daemon is gone, and the prompt with it."
  (when (toold-connected-p)
    (cl-pushnew id toold--answered :test #'equal)
    (ignore-error toold-not-read
      (toold--request
       toold--connection method (append (list :request_id id) params) nil
       (lambda (err)
         (setq toold--answered (delete id toold--answered))
         (cond
          ((eql (plist-get err :code) -1))
          ((equal (plist-get (plist-get err :data) :kind) "unknown_request")
           (message "Nothing was changed: %s"
                    (toold--line (or (plist-get err :message) ""))))
          (t (message "The daemon did not accept the answer: %s"
                      (plist-get err :message)))))))))

(defun toold--ask-for-workspace-p (ask)
  "Whether ASK is for a folder to work in, and not for one file.
Every other request to read suggests patterns."
  (and (equal (plist-get ask :category) "file.read")
       (seq-empty-p (plist-get ask :suggestions))))

(defun toold--reason (ask)
  "Why ASK asks, and until when an answer counts if it does not wait for long."
  (let* ((reason (plist-get ask :reason))
         (at (ignore-errors (date-to-time (plist-get ask :expires_at))))
         (soon (and at (time-less-p at (time-add nil (* 5 60)))
                    (format-time-string "answer by %X" at))))
    (if (toold--ask-for-workspace-p ask)
        reason
      (let ((both (remq nil (list (and reason (not (string-empty-p reason)) reason)
                                  soon))))
        (and both (string-join both "; "))))))

(defun toold--headline (ask)
  "The request ASK on one line."
  (let ((chain (append (plist-get ask :chain) nil))
        (reason (toold--reason ask))
        (subagent (plist-get ask :subagent))
        (agents (cl-remove-if
                 (lambda (agent) (member agent '(nil "emacs")))
                 (or (append (plist-get ask :agents) nil)
                     (list (plist-get ask :agent))))))
    (toold--line
     (concat (plist-get ask :tool)
             (and agents (format " for %s" (string-join agents " and ")))
             (and subagent (format ", sub-agent %s" subagent))
             (and chain (format " (of %s)" (string-join chain ", ")))
             (if (toold--ask-for-workspace-p ask)
                 (concat " wants a folder to work in: "
                         (or reason (plist-get ask :target)))
               (concat " wants " (plist-get ask :category)
                       (and (plist-get ask :part)
                            (format " (%d of %d)" (plist-get ask :part)
                                    (length (plist-get ask :parts))))
                       ": " (plist-get ask :target)
                       (and reason (not (string-empty-p reason))
                            (format " (%s)" reason))))))))

(defun toold--ask-wider (ask)
  "The suggestions of ASK beyond its target: an alist by key."
  (let ((key ?0))
    (cl-loop for suggestion across (plist-get ask :suggestions)
             unless (or (equal (plist-get suggestion :pattern)
                               (plist-get ask :target))
                        (= key ?9))
             collect (cons (cl-incf key) suggestion))))

(defun toold--ask-session (ask)
  "The session of ASK as you know it."
  (toold--line (or (plist-get ask :session_name) "this session")))

(defun toold--ask-offer (ask suggestion)
  "The place and the pattern of SUGGESTION of ASK."
  (let ((covers (plist-get suggestion :covers)))
    (toold--line
     (format "%s: %s%s"
             (pcase (plist-get suggestion :scope)
               ("session" (concat "in " (toold--ask-session ask)))
               ("project" "in this project")
               (scope scope))
             (plist-get suggestion :pattern)
             (if covers (format " (%s)" covers) "")))))

(defun toold--ask-choices (ask)
  "The possible answers to ASK: an alist of choices and params."
  (append
   (cond
    ((toold--ask-for-workspace-p ask)
     ;; All answers but those for the session are remembered.
     `(((?y "yes" "Allow, and remember it for this client")
        :action "allow" :scope "always")
       ((?s "session" ,(format "Allow in %s" (toold--ask-session ask)))
        :action "allow" :scope "session")))
    ((seq-empty-p (plist-get ask :suggestions))
     ;; Nothing of it can be remembered.
     '(((?y "once" "Allow once") :action "allow" :scope "once")))
    (t
     `(((?y "once" "Allow once") :action "allow" :scope "once")
       ((?s "session" ,(format "Allow in %s" (toold--ask-session ask)))
        :action "allow" :scope "session")
       ((?h "hour" "Allow in this project for 1 hour")
        :action "allow" :scope "project" :expires_in 3600)
       ((?p "project" "Allow in this project")
        :action "allow" :scope "project")
       ((?a "always" "Allow always") :action "allow" :scope "always"))))
   (unless (seq-empty-p (plist-get ask :parts))
     '(((?w "whole line" "Allow all parts once")
        :action "allow" :scope "once" :all_parts t)))
   '(((?n "no" "Deny") :action "deny")
     ((?d "deny with reason" "Deny, and say why") :action "deny" :why t))
   (cl-loop for (key . suggestion) in (toold--ask-wider ask)
            for pattern = (plist-get suggestion :pattern)
            for scope = (plist-get suggestion :scope)
            collect `((,key ,(char-to-string key)
                            ,(concat "Allow "
                                     (toold--ask-offer ask suggestion)))
                      :action "allow" :scope ,scope :pattern ,pattern))))

(defun toold--ask-details (ask)
  "The details of ASK."
  (let ((command (plist-get ask :command))
        (diff (plist-get ask :diff)))
    (concat
     (toold--headline ask) "\n"
     (and command (not (equal command (plist-get ask :target)))
          (format "Part of: %s\n" (toold--line command)))
     (and (plist-get ask :description)
          (format "The agent says: %s\n"
                  (toold--line (plist-get ask :description))))
     (cl-loop for warning across (or (plist-get ask :misleading) [])
              concat (format "Careful: %s\n" (toold--line warning)))
     (and (plist-get ask :level)
          (format "Level: %s" (plist-get ask :level)))
     (and (plist-get ask :level) (plist-get ask :cwd)
          (format ", in %s" (toold--line (plist-get ask :cwd))))
     (and (plist-get ask :level) "\n")
     ;; First those that the prompt does not name; beside a diff there is room
     ;; for no others.
     (cl-loop for (choice) in (seq-sort-by (lambda (each)
                                             (if (<= ?1 (caar each) ?9) 0 1))
                                           #'<
                                           (toold--ask-choices ask))
              when (or (null diff) (<= ?1 (car choice) ?9))
              concat (format "%c: %s\n" (car choice) (nth 2 choice)))
     (and diff (concat "\n" diff)))))

(defun toold--ask (ask)
  "Prompt for an answer to ASK, with its details beside it."
  (let ((choices (toold--ask-choices ask)))
    (toold--beside
     "*toold ask*" (toold--ask-details ask)
     (lambda ()
       (let* ((choice (read-multiple-choice
                       (toold--line
                        (format "%s wants %s" (plist-get ask :tool)
                                (if (toold--ask-for-workspace-p ask)
                                    "a folder to work in"
                                  (plist-get ask :category))))
                       (mapcar #'car choices)))
              (params (cdr (cl-find (car choice) choices :key #'caar))))
         (when (plist-get params :why)
           (setq params (list :action "deny"
                              :message (read-string "Why not: "))))
         (toold--reply "permissions.reply" (plist-get ask :request_id)
                       params))))))

(defun toold--question (question)
  "Prompt for an answer to QUESTION.  An empty answer declines."
  (let* ((options (append (plist-get question :options) nil))
         (labels (mapcar (lambda (option)
                           (cons (toold--line (plist-get option :label))
                                 (or (plist-get option :description) "")))
                         options))
         (ids (cl-mapcar (lambda (label option)
                           (cons (car label) (plist-get option :id)))
                         labels options))
         (other (or (eq (plist-get question :allow_other) t) (null options)))
         (prompt (concat (toold--line (plist-get question :question)) " "))
         (answers (if (eq (plist-get question :multiple) t)
                      (completing-read-multiple prompt (toold--table labels)
                                                nil (not other))
                    (list (completing-read prompt (toold--table labels)
                                           nil (not other)))))
         (answers (delete "" answers))
         (chosen (delq nil (mapcar (lambda (each) (cdr (assoc each ids)))
                                   answers)))
         (words (cl-remove-if (lambda (each) (assoc each ids)) answers)))
    (toold--reply
     "questions.reply" (plist-get question :request_id)
     (if (null answers)
         (list :cancelled t)
       (append (and chosen (list :answer_ids (vconcat chosen)))
               (and words (list :answer (string-join words ", "))))))))


;;; Provided tools

(defun toold--file-buffers ()
  "The buffers that visit files, the most recent first."
  (cl-remove-if-not #'buffer-file-name (buffer-list)))

(defun toold--tool-result (lines structured)
  "A result of LINES, with STRUCTURED for programs."
  (list :content (string-join lines "\n") :structured structured))

(defun toold--provided-buffers (_arguments _cwd)
  "Answer `emacs_buffers'."
  (let* ((current (car (toold--file-buffers)))
         (entries
          (mapcar
           (lambda (buffer)
             (with-current-buffer buffer
               (list :path (expand-file-name (buffer-file-name))
                     :mode (symbol-name major-mode)
                     :modified (if (buffer-modified-p) t :json-false)
                     :current (if (eq buffer current) t :json-false)
                     :line (line-number-at-pos nil t))))
           (toold--file-buffers))))
    (toold--tool-result
     (or (mapcar (lambda (entry)
                   (let ((marks
                          (delq nil
                                (list (and (eq t (plist-get entry :current))
                                           (format "current, line %d"
                                                   (plist-get entry :line)))
                                      (and (eq t (plist-get entry :modified))
                                           "unsaved")))))
                     (concat (plist-get entry :path)
                             (and marks
                                  (format "  (%s)"
                                          (string-join marks "; "))))))
                 entries)
         '("no file is open"))
     (list :buffers (vconcat entries)))))

(defun toold--provided-diagnostics (_arguments _cwd)
  "Answer `emacs_diagnostics'."
  (let ((found
         (cl-loop
          for buffer in (toold--file-buffers)
          append
          (with-current-buffer buffer
            (and (bound-and-true-p flymake-mode)
                 (mapcar
                  (lambda (each)
                    (list :path (expand-file-name (buffer-file-name))
                          :line (line-number-at-pos
                                 (flymake-diagnostic-beg each) t)
                          :severity (string-trim
                                     (symbol-name
                                      (flymake-diagnostic-type each))
                                     ":")
                          :message (flymake-diagnostic-text each)))
                  (flymake-diagnostics)))))))
    (toold--tool-result
     (or (mapcar (lambda (each)
                   (format "%s:%d: %s: %s" (plist-get each :path)
                           (plist-get each :line) (plist-get each :severity)
                           (plist-get each :message)))
                 found)
         '("no diagnostics"))
     (list :diagnostics (vconcat found)))))

(defun toold--provided-selection (_arguments _cwd)
  "Answer `emacs_selection'."
  (let ((buffer (or (cl-find-if
                     (lambda (buffer)
                       (buffer-local-value 'mark-active buffer))
                     (toold--file-buffers))
                    (user-error "Nothing is selected"))))
    (with-current-buffer buffer
      (let ((text (buffer-substring-no-properties (region-beginning)
                                                  (region-end)))
            (path (expand-file-name (buffer-file-name)))
            (line (line-number-at-pos (region-beginning) t)))
        (toold--tool-result (list (format "%s:%d" path line) text)
                     (list :path path :line line :text text))))))

(defun toold--provided-open (arguments cwd)
  "Answer `emacs_open' with ARGUMENTS of a caller in CWD."
  (let ((path (expand-file-name
               ;; A quoted name is literal, so it runs no program.
               (concat "/:" (expand-file-name (plist-get arguments :path)
                                              cwd))))
        (line (plist-get arguments :line)))
    (unless (file-regular-p path)
      (user-error "%s is not a file" (plist-get arguments :path)))
    (when (active-minibuffer-window)
      (user-error "The user is typing, so the file was not opened"))
    (let ((enable-local-variables :safe))
      (pop-to-buffer (find-file-noselect (file-name-unquote path))))
    (when line
      (goto-char (point-min))
      (forward-line (1- line)))
    (toold--tool-result (list (format "opened %s at line %d" (buffer-file-name)
                               (line-number-at-pos nil t)))
                 (list :path (buffer-file-name)
                       :line (line-number-at-pos nil t)))))

(defconst toold--provided-tools
  `(("emacs_buffers" toold--provided-buffers
     "Lists the files that are open in the user's Emacs: which is current, which have unsaved text."
     t nil)
    ("emacs_diagnostics" toold--provided-diagnostics
     "Lists what Flymake reports in the user's Emacs, for the files that are open there."
     t nil)
    ("emacs_selection" toold--provided-selection
     "Returns the text that the user has selected in Emacs, with its position."
     t nil)
    ("emacs_open" toold--provided-open
     "Shows the user a file in Emacs, at a line if given."
     nil
     (:type "object"
      :properties
      (:path (:type "string"
              :description "The file, relative to the working folder or absolute.")
       :line (:type "integer" :minimum 1
              :description "The line to put the cursor on."))
      :required ["path"]
      :additionalProperties :json-false)))
  "Emacs's own tools: name, function, description, read-only, schema.")

(defun toold--provide (connection)
  "Provide the tools that `toold-lend' names on CONNECTION."
  (let ((tools
         (cl-loop
          for (name _function description read-only schema) in toold--provided-tools
          when (or (eq toold-lend t) (member name toold-lend))
          collect (list :name name :description description
                        :input_schema
                        (or schema (list :type "object"
                                         :additionalProperties :json-false))
                        :parallelizable t
                        :annotations
                        (list :read_only (if read-only t :json-false)
                              :idempotent t)))))
    (when tools
      (toold--subscribe connection "tools.provide"
                        (list :tools (vconcat tools))
                        (lambda (item)
                          (unless (eq (plist-get item :cancelled) t)
                            (run-at-time 0 nil #'toold--invoked
                                         connection item)))))))

(defun toold--invoked (connection item)
  "Run the invocation ITEM, and answer on CONNECTION."
  (let* ((provided (assoc (plist-get item :name) toold--provided-tools))
         (answer
          (condition-case err
              (list :result (funcall (nth 1 provided)
                                     (plist-get item :arguments)
                                     (plist-get item :cwd)))
            (error (list :error (error-message-string err))))))
    ;; Nobody waits for the result when the daemon is gone.
    (ignore-error toold-not-read
      (toold--request connection "tools.provide_result"
                      (append (list :invocation_id
                                    (plist-get item :invocation_id))
                              answer)))))


;;; The mode

(defun toold--lighter ()
  "The text in the mode line."
  (let ((count (length toold--prompts)))
    (cond ((not (toold-connected-p)) " toold-")
          ((> count 0) (format " toold?%d" count))
          (t " toold"))))

;;;###autoload
(define-minor-mode toold-mode
  "Keep a connection to the toold daemon while one is running.
Permission requests and questions of agents then appear in the
minibuffer at any time, and agents can call Emacs's own tools.  The
mode starts no daemon; calls do."
  :global t
  :lighter (:eval (toold--lighter))
  (if toold-mode
      (unless (ignore-errors (toold--connect nil))
        (toold--reconnect-later 0.25))
    (when (timerp toold--reconnect-timer)
      (cancel-timer toold--reconnect-timer)
      (setq toold--reconnect-timer nil))
    (toold-disconnect)))

(provide 'toold)
;;; toold.el ends here
