"""How a document comes in: a file or a form becomes a `Submission`, and a submission becomes rows.

`files.read_file` reads and judges a file; `submit.submit_document` stores it with its job; `replace.replace` corrects
a failed one; `check.domain_problems` says beforehand what posting would refuse; `lookup` finds it again.
"""
